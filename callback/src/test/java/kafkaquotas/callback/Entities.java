package kafkaquotas.callback;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntityType;

/** Entities as Kafka passes them. Null is an absent type. */
final class Entities {
    static final String DEFAULT = new String("the default");

    private Entities() {
    }

    static ClientQuotaEntity entity(String user, String clientId) {
        List<ConfigEntity> parts = new ArrayList<>();
        if (user != null) {
            parts.add(part(user, ConfigEntityType.USER, ConfigEntityType.DEFAULT_USER));
        }
        if (clientId != null) {
            parts.add(part(clientId, ConfigEntityType.CLIENT_ID, ConfigEntityType.DEFAULT_CLIENT_ID));
        }
        return () -> parts;
    }

    @SuppressWarnings("ReferenceEquality")
    private static ConfigEntity part(String name, ConfigEntityType named, ConfigEntityType unnamed) {
        boolean isDefault = name == DEFAULT;
        return new ConfigEntity() {
            @Override
            public String name() {
                return isDefault ? "<default>" : name;
            }

            @Override
            public ConfigEntityType entityType() {
                return isDefault ? unnamed : named;
            }
        };
    }
}
