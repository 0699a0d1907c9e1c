package kafkaquotas.callback;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;

/** All limits of one quota type: Kafka's eight levels, groups between them, and totals that brokers share by leaders. */
final class TypeLimits {
    static final String GROUP = "group";

    private final PrecedenceLevels levels;
    private final GroupMembers members;
    private final Map<String, Double> groups = new ConcurrentHashMap<>();
    /** By the names of an entity, or a group's name: the total for each target. */
    private final Map<Object, Map<String, Double>> totals = new ConcurrentHashMap<>();

    TypeLimits(GroupMembers members, boolean remembersKinds) {
        this.members = members;
        this.levels = new PrecedenceLevels(remembersKinds);
    }

    PrecedenceLevels levels() {
        return levels;
    }

    void setGroup(String group, double limit) {
        groups.put(group, limit);
    }

    void removeGroup(String group) {
        groups.remove(group);
    }

    void setTotal(Object subject, String target, double total) {
        totals.computeIfAbsent(subject, key -> new ConcurrentSkipListMap<>()).put(target, total);
    }

    void removeTotal(Object subject, String target) {
        Map<String, Double> targets = totals.get(subject);
        if (targets != null) {
            targets.remove(target);
            if (targets.isEmpty()) {
                totals.remove(subject);
            }
        }
    }

    boolean hasTotals() {
        return !totals.isEmpty();
    }

    int countTotals() {
        return totals.size();
    }

    /**
     * A group of users decides after every quota that names the user (levels 1 to 3), a group of client-ids after every
     * quota that names the client-id (level 7). Only then do the defaults decide.
     */
    Map<String, String> tags(String rawUser, String clientId) {
        String user = Names.sanitize(rawUser);
        if (!groups.isEmpty()) {
            if (levels.namesUser(user, clientId)) {
                return levels.tags(user, clientId);
            }
            String group = members.ofUser(rawUser);
            if (group == null || !groups.containsKey(group)) {
                group = levels.precedesGroupsOfClientIds(clientId) ? null : members.ofClientId(clientId);
            }
            if (group != null && groups.containsKey(group)) {
                Map<String, String> tags = new LinkedHashMap<>(2);
                tags.put(GROUP, Names.sanitize(group));
                return tags;
            }
        }
        return levels.tags(user, clientId);
    }

    Double limit(Map<String, String> tags, LeaderShares shares) {
        String group = tags.get(GROUP);
        if (group != null) {
            return groupLimit(Names.desanitize(group), shares);
        }
        String user = tags.get(PrecedenceLevels.USER);
        String clientId = tags.get(PrecedenceLevels.CLIENT_ID);
        if (user == null || clientId == null) {
            return null;
        }
        Names winner = levels.winner(user, clientId);
        return winner == null ? null : part(winner, levels.limit(winner), shares);
    }

    Double groupLimit(String group, LeaderShares shares) {
        Double limit = groups.get(group);
        return limit == null ? null : part(group, limit, shares);
    }

    /** The quota itself while the leaders are not known: the largest part of any broker when it was written. */
    private Double part(Object subject, Double stored, LeaderShares shares) {
        Map<String, Double> targets = totals.get(subject);
        if (targets == null || shares == null || stored == null) {
            return stored;
        }
        Map<String, Double> now = new TreeMap<>(targets);
        if (now.isEmpty()) {
            return stored;
        }
        // While a total changes its targets may differ for a moment: the smaller one counts.
        Double part = shares.part(Collections.min(now.values()), now.keySet());
        return part == null ? stored : part;
    }
}
