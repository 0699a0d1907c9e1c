package kafkaquotas.callback;

import java.io.IOException;
import java.io.InputStream;
import java.util.EnumMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Kafka's own quotas, and groups of users and client-ids that share one limit, and limits in proportion to the partitions that
 * a broker leads. Groups and totals are stored as quotas of reserved users: see {@link StoredRule}.
 *
 * <p>{@code client.quota.callback.class=kafkaquotas.callback.GroupQuotaCallback} switches it on. Its settings are those of {@link LeaderQuery}.
 */
public final class GroupQuotaCallback implements ClientQuotaCallback, CallbackStatusMXBean {
    private static final Logger LOG = LoggerFactory.getLogger(GroupQuotaCallback.class);
    private static final int[] FORGETS_KINDS = {4, 2};
    private static final double UNLIMITED = -1.0;
    private static final int LONGEST_SHOWN = 300;

    private final GroupMembers members = new GroupMembers();
    private final Map<ClientQuotaType, TypeLimits> limits = new EnumMap<>(ClientQuotaType.class);
    private final Map<String, GroupStatus> groups = new ConcurrentHashMap<>();
    private final Set<String> ignored = ConcurrentHashMap.newKeySet();
    private final LongAdder groupDecisions = new LongAdder();
    private final LongAdder levelDecisions = new LongAdder();
    private final AtomicLong failures = new AtomicLong();
    private final AtomicLong metadataUpdates = new AtomicLong();
    private final Beans beans = new Beans();
    private volatile LeaderShares shares;
    private final Set<ClientQuotaType> outdated = ConcurrentHashMap.newKeySet();
    private volatile int node = -1;
    private volatile LeaderQuery query;

    /** For the broker, which is of the version of its {@code kafka-clients}. */
    public GroupQuotaCallback() {
        this(remembersKinds(versionOfKafka()));
    }

    GroupQuotaCallback(boolean remembersKinds) {
        for (ClientQuotaType type : ClientQuotaType.values()) {
            limits.put(type, new TypeLimits(members, remembersKinds));
        }
    }

    @Override
    public void configure(Map<String, ?> settings) {
        for (String name : new String[] {"node.id", "broker.id"}) {
            Object value = settings.get(name);
            if (value != null && node < 0) {
                try {
                    node = Integer.parseInt(value.toString().trim());
                } catch (NumberFormatException error) {
                    LOG.warn("The quota callback does not understand {}={}", name, value);
                }
            }
        }
        beans.addStatus(this, node);
        query = LeaderQuery.of(settings, this::learn);
        LOG.info("The quota callback of node {} shares limits by group", node);
    }

    @Override
    public Map<String, String> quotaMetricTags(ClientQuotaType type, KafkaPrincipal principal, String clientId) {
        TypeLimits limitsOfType = limits.get(type);
        String user = principal.getName();
        String client = clientId == null ? "" : clientId;
        Map<String, String> tags;
        try {
            tags = limitsOfType.tags(user, client);
        } catch (RuntimeException error) {
            // On a request's thread: whatever it is, the request goes on.
            fail("quotaMetricTags", error);
            tags = limitsOfType.levels().tags(Names.sanitize(user), client);
        }
        String group = tags.get(TypeLimits.GROUP);
        if (group == null) {
            levelDecisions.increment();
        } else {
            groupDecisions.increment();
            GroupStatus status = groups.get(Names.desanitize(group));
            if (status != null) {
                status.decisions.increment();
            }
        }
        return tags;
    }

    @Override
    public Double quotaLimit(ClientQuotaType type, Map<String, String> tags) {
        return limits.get(type).limit(tags, shares);
    }

    @Override
    public synchronized void updateQuota(ClientQuotaType type, ClientQuotaEntity entity, double value) {
        Names names = Names.of(entity);
        if (names == null) {
            ignore(entity.toString());
            return;
        }
        TypeLimits limitsOfType = limits.get(type);
        if (!StoredRule.isReserved(names)) {
            limitsOfType.levels().update(names, value);
            return;
        }
        StoredRule rule = StoredRule.of(names);
        if (rule == null) {
            ignore(type + " " + names);
        } else if (rule.kind() == StoredRule.Kind.GROUP_LIMIT) {
            limitsOfType.setGroup(rule.group(), value);
            show(rule.group());
        } else if (rule.kind() == StoredRule.Kind.MEMBER) {
            members.add(rule.group(), rule.detail(), type);
            show(rule.group());
        } else {
            limitsOfType.setTotal(rule.subject(), rule.detail(), value);
        }
    }

    @Override
    public synchronized void removeQuota(ClientQuotaType type, ClientQuotaEntity entity) {
        Names names = Names.of(entity);
        if (names == null) {
            return;
        }
        TypeLimits limitsOfType = limits.get(type);
        if (!StoredRule.isReserved(names)) {
            limitsOfType.levels().remove(names);
            return;
        }
        StoredRule rule = StoredRule.of(names);
        if (rule == null) {
            ignored.remove(type + " " + names);
        } else if (rule.kind() == StoredRule.Kind.GROUP_LIMIT) {
            limitsOfType.removeGroup(rule.group());
            hide(rule.group());
        } else if (rule.kind() == StoredRule.Kind.MEMBER) {
            members.remove(rule.group(), rule.detail(), type);
            hide(rule.group());
        } else {
            limitsOfType.removeTotal(rule.subject(), rule.detail());
        }
    }

    /** Once after the query has found other leaders. All else changes by calls that Kafka follows by itself. */
    @Override
    public boolean quotaResetRequired(ClientQuotaType type) {
        return !outdated.isEmpty() && outdated.remove(type);
    }

    /** Takes the answer of the query. */
    void learn(Cluster cluster) {
        if (updateClusterMetadata(cluster)) {
            outdated.addAll(limits.keySet());
        }
    }

    /** From Kafka 4.0 on in KRaft mode. Deprecated there from 4.4 on, and not in the interface of 5.0 (KIP-1200). */
    @SuppressWarnings({"deprecation", "removal"})
    public synchronized boolean updateClusterMetadata(Cluster cluster) {
        metadataUpdates.incrementAndGet();
        LeaderShares before = shares;
        LeaderShares after = LeaderShares.of(cluster, node);
        shares = after;
        return !after.sameAs(before) && limits.values().stream().anyMatch(TypeLimits::hasTotals);
    }

    @Override
    public void close() {
        LeaderQuery asking = query;
        if (asking != null) {
            asking.close();
        }
        beans.removeAll();
    }

    private void show(String group) {
        if (!groups.containsKey(group)) {
            GroupStatus status = new GroupStatus(group);
            groups.put(group, status);
            beans.addGroup(group, status, node);
        }
    }

    private void hide(String group) {
        boolean limited = limits.values().stream().anyMatch(one -> one.groupLimit(group, null) != null);
        if (!limited && members.count(group) == 0) {
            groups.remove(group);
            beans.removeGroup(group);
        }
    }

    private void ignore(String what) {
        if (ignored.add(what)) {
            String shown = what.length() <= LONGEST_SHOWN ? what : what.substring(0, LONGEST_SHOWN) + "...";
            LOG.warn("The quota callback ignores the quota of {}: its names follow no rule", shown);
        }
    }

    private void fail(String method, RuntimeException error) {
        if (failures.getAndIncrement() == 0L) {
            LOG.warn("The quota callback failed in {}. Further failures are only counted", method, error);
        }
    }

    private static String versionOfKafka() {
        try (InputStream in = ClientQuotaCallback.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            Properties properties = new Properties();
            if (in != null) {
                properties.load(in);
            }
            return properties.getProperty("version", "");
        } catch (IOException error) {
            return "";
        }
    }

    /** An unknown version counts as a new one. */
    static boolean remembersKinds(String version) {
        String[] parts = version.split("[.-]");
        try {
            int major = Integer.parseInt(parts[0]);
            int minor = parts.length > 1 ? Integer.parseInt(parts[1]) : 0;
            return major < FORGETS_KINDS[0] || major == FORGETS_KINDS[0] && minor < FORGETS_KINDS[1];
        } catch (NumberFormatException error) {
            return false;
        }
    }

    @Override
    public int getGroups() {
        return groups.size();
    }

    @Override
    public int getMembers() {
        return members.count();
    }

    @Override
    public int getMembersInSeveralGroups() {
        return members.conflicts();
    }

    @Override
    public int getProportionalQuotas() {
        return limits.values().stream().mapToInt(TypeLimits::countTotals).sum();
    }

    @Override
    public int getIgnoredQuotas() {
        return ignored.size();
    }

    @Override
    public long getGroupDecisions() {
        return groupDecisions.sum();
    }

    @Override
    public long getLevelDecisions() {
        return levelDecisions.sum();
    }

    @Override
    public long getFailures() {
        return failures.get();
    }

    @Override
    public boolean isLeadersKnown() {
        return shares != null;
    }

    @Override
    public int getPartitionsLed() {
        LeaderShares now = shares;
        return now == null ? 0 : now.led();
    }

    @Override
    public int getPartitions() {
        LeaderShares now = shares;
        return now == null ? 0 : now.all();
    }

    @Override
    public long getMetadataUpdates() {
        return metadataUpdates.get();
    }

    private final class GroupStatus implements GroupStatusMXBean {
        private final String group;
        private final LongAdder decisions = new LongAdder();

        GroupStatus(String group) {
            this.group = group;
        }

        private double limit(ClientQuotaType type) {
            Double limit = limits.get(type).groupLimit(group, shares);
            return limit == null ? UNLIMITED : limit;
        }

        @Override
        public int getMembers() {
            return members.count(group);
        }

        @Override
        public long getDecisions() {
            return decisions.sum();
        }

        @Override
        public double getProduceLimit() {
            return limit(ClientQuotaType.PRODUCE);
        }

        @Override
        public double getFetchLimit() {
            return limit(ClientQuotaType.FETCH);
        }

        @Override
        public double getRequestLimit() {
            return limit(ClientQuotaType.REQUEST);
        }

        @Override
        public double getControllerMutationLimit() {
            return limit(ClientQuotaType.CONTROLLER_MUTATION);
        }
    }
}
