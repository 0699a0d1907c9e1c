import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/**
 * The least that brings a cluster to a file of wanted user quotas: one describe, the difference, alterations of 1,000 users a
 * call, and a wait for all of them. No validation, no reading back.
 *
 * <p>Usage: Batch BOOTSTRAP FILE, a line a user: name, then key=value, separated by tabs.
 */
public final class Batch {
    private static final int USERS_A_CALL = 1000;

    public static void main(String[] args) throws Exception {
        Map<ClientQuotaEntity, Map<String, Double>> wanted = new HashMap<>();
        for (String line : Files.readAllLines(Path.of(args[1]), StandardCharsets.UTF_8)) {
            String[] fields = line.split("\t");
            Map<String, Double> quotas = new HashMap<>();
            for (int i = 1; i < fields.length; i++) {
                int equals = fields[i].indexOf('=');
                quotas.put(fields[i].substring(0, equals), Double.valueOf(fields[i].substring(equals + 1)));
            }
            wanted.put(new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, fields[0])), quotas);
        }
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        try (Admin admin = Admin.create(settings)) {
            Map<ClientQuotaEntity, Map<String, Double>> live = admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get();
            List<ClientQuotaAlteration> changes = new ArrayList<>();
            wanted.forEach((entity, quotas) -> {
                Map<String, Double> now = live.getOrDefault(entity, Map.of());
                List<ClientQuotaAlteration.Op> ops = new ArrayList<>();
                quotas.forEach((key, value) -> {
                    if (!value.equals(now.get(key))) {
                        ops.add(new ClientQuotaAlteration.Op(key, value));
                    }
                });
                if (!ops.isEmpty()) {
                    changes.add(new ClientQuotaAlteration(entity, ops));
                }
            });
            List<KafkaFuture<Void>> calls = new ArrayList<>();
            for (int from = 0; from < changes.size(); from += USERS_A_CALL) {
                List<ClientQuotaAlteration> some = changes.subList(from, Math.min(from + USERS_A_CALL, changes.size()));
                calls.add(admin.alterClientQuotas(some).all());
            }
            for (KafkaFuture<Void> call : calls) {
                call.get();
            }
            System.out.println(changes.size());
        }
    }
}
