package kafkaquotas.callback;

import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

/** How many partitions of each topic this broker leads, and how many there are. Immutable. */
final class LeaderShares {
    private static final String INTERNAL = "__";

    private final Map<String, int[]> byTopic;
    private final int led;
    private final int all;

    private LeaderShares(Map<String, int[]> byTopic, int led, int all) {
        this.byTopic = byTopic;
        this.led = led;
        this.all = all;
    }

    /** Kafka's own topics, whose names begin with two underscores, count only where a rule names them. */
    static LeaderShares of(Cluster cluster, int broker) {
        Map<String, int[]> byTopic = new HashMap<>();
        int led = 0;
        int all = 0;
        for (String topic : cluster.topics()) {
            int[] counts = new int[2];
            for (PartitionInfo partition : cluster.partitionsForTopic(topic)) {
                Node leader = partition.leader();
                counts[0] += leader != null && leader.id() == broker ? 1 : 0;
                counts[1]++;
            }
            byTopic.put(topic, counts);
            if (!topic.startsWith(INTERNAL)) {
                led += counts[0];
                all += counts[1];
            }
        }
        return new LeaderShares(byTopic, led, all);
    }

    /**
     * This broker's part of {@code total}; null when there are no such partitions.
     *
     * <p>A broker that leads none of them gets the part of one partition: Kafka has no limit of 0, and the first leader
     * may come before the next metadata.
     */
    Double part(double total, Iterable<String> targets) {
        int mine = 0;
        int whole = 0;
        for (String target : targets) {
            if (target.equals(StoredRule.LEADERS)) {
                mine += led;
                whole += all;
            } else {
                int[] counts = byTopic.get(target.substring(StoredRule.TOPIC.length()));
                mine += counts == null ? 0 : counts[0];
                whole += counts == null ? 0 : counts[1];
            }
        }
        return whole == 0 ? null : Double.valueOf(total * Math.max(mine, 1) / whole);
    }

    int led() {
        return led;
    }

    int all() {
        return all;
    }

    boolean sameAs(LeaderShares other) {
        if (other == null || other.led != led || other.all != all || !other.byTopic.keySet().equals(byTopic.keySet())) {
            return false;
        }
        for (Map.Entry<String, int[]> entry : byTopic.entrySet()) {
            int[] counts = other.byTopic.get(entry.getKey());
            if (counts[0] != entry.getValue()[0] || counts[1] != entry.getValue()[1]) {
                return false;
            }
        }
        return true;
    }
}
