package kafkaquotas.callback;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.SortedSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.kafka.server.quota.ClientQuotaType;

/**
 * Who belongs to which group. A full name decides before a prefix, and a longer prefix before a shorter one.
 *
 * <p>Names are as they are, not encoded. Of a member in two groups the group whose name sorts first decides.
 */
final class GroupMembers {
    private static final String USER = "user:";
    private static final String CLIENT_ID = "client-id:";
    private static final String USER_PREFIX = "user-prefix:";
    private static final String CLIENT_ID_PREFIX = "client-id-prefix:";
    /** A request looks up each prefix of its names up to the longest one that is stored. */
    private static final int LONGEST_PREFIX = 255;

    private final Map<String, SortedSet<String>> groups = new ConcurrentHashMap<>();
    private final Map<String, Set<ClientQuotaType>> stored = new ConcurrentHashMap<>();
    private final Map<String, Integer> sizes = new ConcurrentHashMap<>();
    private volatile int conflicts;
    /** They only grow: a longer one than there is costs a few look-ups. */
    private volatile int longestUserPrefix;
    private volatile int longestClientIdPrefix;

    static boolean isMember(String text) {
        if (text == null) {
            return false;
        }
        for (String kind : new String[] {USER, CLIENT_ID, USER_PREFIX, CLIENT_ID_PREFIX}) {
            if (text.startsWith(kind) && text.length() > kind.length()) {
                return kind.equals(USER) || kind.equals(CLIENT_ID) || text.length() - kind.length() <= LONGEST_PREFIX;
            }
        }
        return false;
    }

    /** A membership may be stored with several quota keys, and lasts as long as any of them. */
    synchronized void add(String group, String member, ClientQuotaType type) {
        stored.computeIfAbsent(group + "\0" + member, key -> new HashSet<>()).add(type);
        SortedSet<String> of = groups.computeIfAbsent(member, key -> new ConcurrentSkipListSet<>());
        if (of.add(group)) {
            sizes.merge(group, 1, Integer::sum);
            conflicts += of.size() == 2 ? 1 : 0;
        }
        if (member.startsWith(USER_PREFIX)) {
            longestUserPrefix = Math.max(longestUserPrefix, member.length() - USER_PREFIX.length());
        } else if (member.startsWith(CLIENT_ID_PREFIX)) {
            longestClientIdPrefix = Math.max(longestClientIdPrefix, member.length() - CLIENT_ID_PREFIX.length());
        }
    }

    synchronized void remove(String group, String member, ClientQuotaType type) {
        Set<ClientQuotaType> types = stored.get(group + "\0" + member);
        if (types == null || !types.remove(type) || !types.isEmpty()) {
            return;
        }
        stored.remove(group + "\0" + member);
        SortedSet<String> left = groups.get(member);
        left.remove(group);
        sizes.computeIfPresent(group, (key, size) -> size == 1 ? null : size - 1);
        conflicts -= left.size() == 1 ? 1 : 0;
        if (left.isEmpty()) {
            groups.remove(member);
        }
    }

    /** The group of a user; null for none. */
    String ofUser(String user) {
        return groupOf(user, USER, USER_PREFIX, longestUserPrefix);
    }

    /** The group of a client-id; null for none. */
    String ofClientId(String clientId) {
        return clientId.isEmpty() ? null : groupOf(clientId, CLIENT_ID, CLIENT_ID_PREFIX, longestClientIdPrefix);
    }

    int count() {
        return groups.size();
    }

    int count(String group) {
        return sizes.getOrDefault(group, 0);
    }

    /** Members of more than one group. */
    int conflicts() {
        return conflicts;
    }

    private String groupOf(String name, String whole, String prefix, int longest) {
        if (groups.isEmpty()) {
            return null;
        }
        String group = first(whole + name);
        for (int length = Math.min(longest, name.length()); group == null && length > 0; length--) {
            group = first(prefix + name.substring(0, length));
        }
        return group;
    }

    /** Read while another thread may remove the last group of a member. */
    private String first(String member) {
        SortedSet<String> of = groups.get(member);
        if (of == null) {
            return null;
        }
        for (String group : of) {
            return group;
        }
        return null;
    }
}
