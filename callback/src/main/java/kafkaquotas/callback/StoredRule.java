package kafkaquotas.callback;

/**
 * What a quota of a reserved user means to the callback.
 *
 * <table>
 * <caption>The naming rule</caption>
 * <tr><th>user</th><th>client-id</th><th>value</th></tr>
 * <tr><td>{@code kafka-quotas:group:NAME}</td><td>absent</td><td>the group's limit</td></tr>
 * <tr><td>{@code kafka-quotas:group:NAME}</td><td>{@code user:U}, {@code client-id:C}, {@code user-prefix:P} or
 * {@code client-id-prefix:P}, prefixes of at most 255 characters</td><td>of no weight: a member</td></tr>
 * <tr><td>{@code kafka-quotas:proportional:SUBJECT}</td><td>{@code leaders} or {@code topic:T}</td><td>the total of
 * the cluster</td></tr>
 * </table>
 *
 * <p>A subject is {@code user=U}, {@code client-id=C}, both with a comma between them, or {@code group=G}. Its names are
 * percent-encoded, and a default is {@code <default>}.
 */
final class StoredRule {
    static final String RESERVED = "kafka-quotas:";
    static final String GROUP = RESERVED + "group:";
    static final String PROPORTIONAL = RESERVED + "proportional:";
    static final String LEADERS = "leaders";
    static final String TOPIC = "topic:";

    enum Kind { GROUP_LIMIT, MEMBER, PROPORTION }

    private final Kind kind;
    private final String group;
    private final Names subject;
    private final String detail;

    private StoredRule(Kind kind, String group, Names subject, String detail) {
        this.kind = kind;
        this.group = group;
        this.subject = subject;
        this.detail = detail;
    }

    /** Whether the entity is for the callback alone. */
    static boolean isReserved(Names names) {
        String user = names.rawUser();
        return user != null && user.startsWith(RESERVED);
    }

    /** The rule; null when the names of a reserved user follow none. */
    static StoredRule of(Names names) {
        String user = names.rawUser();
        String clientId = names.rawClientId();
        if (user.startsWith(GROUP) && user.length() > GROUP.length()) {
            String group = user.substring(GROUP.length());
            if (!names.hasClientId()) {
                return new StoredRule(Kind.GROUP_LIMIT, group, null, null);
            }
            return GroupMembers.isMember(clientId) ? new StoredRule(Kind.MEMBER, group, null, clientId) : null;
        }
        if (user.startsWith(PROPORTIONAL) && clientId != null) {
            boolean known = clientId.equals(LEADERS) || clientId.startsWith(TOPIC) && clientId.length() > TOPIC.length();
            return known ? proportion(user.substring(PROPORTIONAL.length()), clientId) : null;
        }
        return null;
    }

    private static StoredRule proportion(String text, String target) {
        String user = Names.ABSENT;
        String clientId = Names.ABSENT;
        String group = null;
        for (String part : text.split(",", -1)) {
            int equals = part.indexOf('=');
            String type = equals < 0 ? part : part.substring(0, equals);
            String name = equals < 0 ? "" : part.substring(equals + 1);
            if (name.isEmpty()) {
                return null;
            }
            boolean isDefault = name.equals("<default>");
            String raw = isDefault ? null : decoded(name);
            if (raw == null && !isDefault) {
                return null;
            }
            if (type.equals(TypeLimits.GROUP) && group == null && !isDefault) {
                group = raw;
            } else if (type.equals(PrecedenceLevels.USER) && user.isEmpty()) {
                user = isDefault ? Names.DEFAULT : Names.named(name);
            } else if (type.equals(PrecedenceLevels.CLIENT_ID) && clientId.isEmpty()) {
                clientId = isDefault ? Names.DEFAULT : Names.named(raw);
            } else {
                return null;
            }
        }
        boolean levels = !user.isEmpty() || !clientId.isEmpty();
        if (levels == (group != null)) {
            return null;
        }
        return new StoredRule(Kind.PROPORTION, group, levels ? Names.of(user, clientId) : null, target);
    }

    /** Null for text that no name is encoded as. */
    private static String decoded(String text) {
        try {
            String name = Names.desanitize(text);
            return Names.sanitize(name).equals(text) ? name : null;
        } catch (IllegalArgumentException error) {
            return null;
        }
    }

    Kind kind() {
        return kind;
    }

    String group() {
        return group;
    }

    /** Whose limit is proportional: the names of an entity, or the name of a group. */
    Object subject() {
        return subject == null ? group : subject;
    }

    /** The member, or what the limit is proportional to. */
    String detail() {
        return detail;
    }
}
