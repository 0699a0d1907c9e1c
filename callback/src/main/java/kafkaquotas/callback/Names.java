package kafkaquotas.callback;

import java.io.UnsupportedEncodingException;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import org.apache.kafka.server.quota.ClientQuotaEntity;

/**
 * The user and the client-id of a quota entity. Each is absent, the default, or a name.
 *
 * <p>Users are in the percent-encoded form of Kafka's metric tags, client-ids as they are.
 */
final class Names {
    /** What a percent-encoded user and a client-id of an entity cannot be confused with: see {@link #named}. */
    static final String DEFAULT = "*";
    static final String ABSENT = "";

    private final String user;
    private final String clientId;

    private Names(String user, String clientId) {
        this.user = user;
        this.clientId = clientId;
    }

    /** Each part is {@link #ABSENT}, {@link #DEFAULT}, or made by {@link #named}. */
    static Names of(String user, String clientId) {
        return new Names(user, clientId);
    }

    static String named(String name) {
        return "=" + name;
    }

    /** Null for an entity of other types. */
    static Names of(ClientQuotaEntity entity) {
        String user = ABSENT;
        String clientId = ABSENT;
        for (ClientQuotaEntity.ConfigEntity part : entity.configEntities()) {
            // The name of a default is empty by Kafka's documentation, and "<default>" by its code: only the type counts.
            switch (part.entityType()) {
                case USER:
                    user = named(sanitize(part.name()));
                    break;
                case CLIENT_ID:
                    clientId = named(part.name());
                    break;
                case DEFAULT_USER:
                    user = DEFAULT;
                    break;
                case DEFAULT_CLIENT_ID:
                    clientId = DEFAULT;
                    break;
                default:
                    return null;
            }
        }
        return user.isEmpty() && clientId.isEmpty() ? null : new Names(user, clientId);
    }

    /** The user's name as it is; null for a default or an entity without a user. */
    String rawUser() {
        return user.startsWith("=") ? desanitize(user.substring(1)) : null;
    }

    /** The client-id; null for a default or an entity without one. */
    String rawClientId() {
        return clientId.startsWith("=") ? clientId.substring(1) : null;
    }

    boolean hasUser() {
        return !user.isEmpty();
    }

    boolean hasClientId() {
        return !clientId.isEmpty();
    }

    /** As Kafka encodes users in metric tags. Its class moves between releases, and so is not called. */
    static String sanitize(String name) {
        if (isPlain(name)) {
            return name;
        }
        try {
            String encoded = URLEncoder.encode(name, StandardCharsets.UTF_8.name());
            return encoded.replace("*", "%2A").replace("+", "%20");
        } catch (UnsupportedEncodingException error) {
            throw new IllegalStateException(error);
        }
    }

    static String desanitize(String encoded) {
        return URLDecoder.decode(encoded, StandardCharsets.UTF_8);
    }

    private static boolean isPlain(String name) {
        for (int index = 0; index < name.length(); index++) {
            char letter = name.charAt(index);
            boolean plain = letter >= 'a' && letter <= 'z' || letter >= 'A' && letter <= 'Z' || letter >= '0' && letter <= '9'
                || letter == '-' || letter == '_' || letter == '.';
            if (!plain) {
                return false;
            }
        }
        return true;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Names && ((Names) other).user.equals(user) && ((Names) other).clientId.equals(clientId);
    }

    @Override
    public int hashCode() {
        return Objects.hash(user, clientId);
    }

    @Override
    public String toString() {
        return "user " + user + " client-id " + clientId;
    }
}
