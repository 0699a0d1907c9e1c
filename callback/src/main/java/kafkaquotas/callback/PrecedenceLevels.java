package kafkaquotas.callback;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Kafka's own eight levels for one quota type: the tags and limits that a broker without a callback has. */
final class PrecedenceLevels {
    static final String USER = "user";
    static final String CLIENT_ID = "client-id";

    private static final int CLIENT_ID_KIND = 1;
    private static final int USER_KIND = 2;
    private static final int USER_CLIENT_ID_KIND = 4;

    private final Map<Names, Double> quotas = new ConcurrentHashMap<>();
    private final int[] counts = new int[USER_CLIENT_ID_KIND + 1];
    private final boolean remembersKinds;
    private volatile int kinds;

    /** {@code remembersKinds}: brokers before 4.2 remember until a restart which kinds of quota there were. */
    PrecedenceLevels(boolean remembersKinds) {
        this.remembersKinds = remembersKinds;
    }

    synchronized void update(Names names, double limit) {
        if (quotas.put(names, limit) == null) {
            counts[kindOf(names)]++;
            kinds |= kindOf(names);
        }
    }

    synchronized void remove(Names names) {
        int kind = kindOf(names);
        if (remembersKinds) {
            // Those brokers remember the kind of a quota that there never was, too.
            kinds |= kind;
        }
        if (quotas.remove(names) != null) {
            counts[kind]--;
            if (counts[kind] == 0 && !remembersKinds) {
                kinds &= ~kind;
            }
        }
    }

    /** The tags of a client; the user percent-encoded. */
    Map<String, String> tags(String user, String clientId) {
        switch (kinds) {
            case 0:
            case CLIENT_ID_KIND:
                return tagged("", clientId);
            case USER_KIND:
                return tagged(user, "");
            case USER_CLIENT_ID_KIND:
                return tagged(user, clientId);
            default:
                return walk(user, clientId);
        }
    }

    private Map<String, String> walk(String user, String clientId) {
        String namedUser = Names.named(user);
        String namedClientId = Names.named(clientId);
        if (has(namedUser, namedClientId) || has(namedUser, Names.DEFAULT)) {
            return tagged(user, clientId);
        }
        if (has(namedUser, Names.ABSENT)) {
            return tagged(user, "");
        }
        if (has(Names.DEFAULT, namedClientId) || has(Names.DEFAULT, Names.DEFAULT)) {
            return tagged(user, clientId);
        }
        return has(Names.DEFAULT, Names.ABSENT) ? tagged(user, "") : tagged("", clientId);
    }

    /** Whether a quota names this very user: levels 1 to 3. A client without a client-id is reached by level 3 alone. */
    boolean namesUser(String user, String clientId) {
        String namedUser = Names.named(user);
        return has(namedUser, Names.ABSENT)
            || !clientId.isEmpty() && (has(namedUser, Names.named(clientId)) || has(namedUser, Names.DEFAULT));
    }

    /** Whether levels 4 to 7 reach the client: all that precede a group of client-ids. */
    boolean precedesGroupsOfClientIds(String clientId) {
        String namedClientId = Names.named(clientId);
        return has(Names.DEFAULT, Names.ABSENT)
            || !clientId.isEmpty()
                && (has(Names.DEFAULT, namedClientId) || has(Names.DEFAULT, Names.DEFAULT) || has(Names.ABSENT, namedClientId));
    }

    /** The entity that sets the limit of these tags; null for none. */
    Names winner(String user, String clientId) {
        String namedUser = Names.named(user);
        String namedClientId = Names.named(clientId);
        if (!user.isEmpty() && !clientId.isEmpty()) {
            return first(
                Names.of(namedUser, namedClientId), Names.of(namedUser, Names.DEFAULT),
                Names.of(Names.DEFAULT, namedClientId), Names.of(Names.DEFAULT, Names.DEFAULT));
        }
        if (!user.isEmpty()) {
            return first(Names.of(namedUser, Names.ABSENT), Names.of(Names.DEFAULT, Names.ABSENT));
        }
        return clientId.isEmpty() ? null : first(Names.of(Names.ABSENT, namedClientId), Names.of(Names.ABSENT, Names.DEFAULT));
    }

    Double limit(Names names) {
        return quotas.get(names);
    }

    private Names first(Names... levels) {
        for (Names level : levels) {
            if (quotas.containsKey(level)) {
                return level;
            }
        }
        return null;
    }

    private boolean has(String user, String clientId) {
        return quotas.containsKey(Names.of(user, clientId));
    }

    private static int kindOf(Names names) {
        return !names.hasUser() ? CLIENT_ID_KIND : !names.hasClientId() ? USER_KIND : USER_CLIENT_ID_KIND;
    }

    /** In this order: Kafka makes a sensor's name of the values as they come. */
    private static Map<String, String> tagged(String user, String clientId) {
        Map<String, String> tags = new LinkedHashMap<>(4);
        tags.put(USER, user);
        tags.put(CLIENT_ID, clientId);
        return tags;
    }
}
