package kafkaquotas.callback;

import static kafkaquotas.callback.Entities.DEFAULT;
import static kafkaquotas.callback.Entities.entity;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class GroupQuotaCallbackTest {
    private static final String PAYMENTS = "kafka-quotas:group:payments";
    private static final Map<String, String> IN_PAYMENTS = Map.of("group", "payments");
    private static final ClientQuotaType PRODUCE = ClientQuotaType.PRODUCE;
    private static final ClientQuotaType FETCH = ClientQuotaType.FETCH;

    private final GroupQuotaCallback callback = new GroupQuotaCallback(false);

    @AfterEach
    void close() {
        callback.close();
    }

    private void set(String user, String clientId, double value) {
        callback.updateQuota(PRODUCE, entity(user, clientId), value);
    }

    private void remove(String user, String clientId) {
        callback.removeQuota(PRODUCE, entity(user, clientId));
    }

    private Map<String, String> tags(String user, String clientId) {
        return callback.quotaMetricTags(PRODUCE, new KafkaPrincipal("User", user), clientId);
    }

    private Double limit(String user, String clientId) {
        return callback.quotaLimit(PRODUCE, tags(user, clientId));
    }

    @Test
    void membersOfAGroupShareOneLimitAndOthersDoNot() {
        set(PAYMENTS, null, 1000.0);
        set(PAYMENTS, "user:alice", 1.0);
        set(PAYMENTS, "client-id:batch", 1.0);
        assertEquals(IN_PAYMENTS, tags("alice", "app"));
        assertEquals(IN_PAYMENTS, tags("alice", ""));
        assertEquals(IN_PAYMENTS, tags("bob", "batch"));
        assertEquals(1000.0, limit("alice", "app"));
        assertEquals(Map.of("user", "", "client-id", "app"), tags("bob", "app"));
        assertNull(limit("bob", "app"));
        remove(PAYMENTS, "user:alice");
        assertEquals(Map.of("user", "", "client-id", "app"), tags("alice", "app"));
    }

    @Test
    void aGroupLimitsOnlyTheQuotaTypesItHasALimitFor() {
        set(PAYMENTS, null, 1000.0);
        set(PAYMENTS, "user:alice", 1.0);
        KafkaPrincipal alice = new KafkaPrincipal("User", "alice");
        assertEquals(Map.of("user", "", "client-id", "app"), callback.quotaMetricTags(FETCH, alice, "app"));
        callback.updateQuota(FETCH, entity(PAYMENTS, null), 7.0);
        assertEquals(IN_PAYMENTS, callback.quotaMetricTags(FETCH, alice, "app"));
        assertEquals(7.0, callback.quotaLimit(FETCH, IN_PAYMENTS));
        assertEquals(1000.0, limit("alice", "app"));
    }

    @Test
    void aQuotaThatNamesTheMemberDecidesBeforeTheGroupAndADefaultAfterIt() {
        set(PAYMENTS, null, 1000.0);
        set(PAYMENTS, "user:alice", 1.0);
        set(PAYMENTS, "client-id:batch", 1.0);
        set(DEFAULT, null, 5.0);
        assertEquals(1000.0, limit("alice", "app"));
        // A default for all users precedes every quota of a client-id, that of its group too.
        assertEquals(5.0, limit("bob", "batch"));
        remove(DEFAULT, null);
        set(null, DEFAULT, 3.0);
        assertEquals(1000.0, limit("bob", "batch"));
        set(null, "batch", 4.0);
        assertEquals(4.0, limit("bob", "batch"));
        set("alice", "app", 6.0);
        assertEquals(6.0, limit("alice", "app"));
        assertEquals(1000.0, limit("alice", "x"));
        set("alice", DEFAULT, 8.0);
        assertEquals(8.0, limit("alice", "x"));
        // A quota of a user with any client-id does not reach a client without one.
        assertEquals(1000.0, limit("alice", ""));
        set("alice", null, 9.0);
        assertEquals(9.0, limit("alice", ""));
    }

    @Test
    void fullNamesDecideBeforePrefixesAndLongPrefixesBeforeShortOnes() {
        for (String group : List.of("a", "b", "c")) {
            set("kafka-quotas:group:" + group, null, 1.0);
        }
        set("kafka-quotas:group:a", "user-prefix:svc-", 1.0);
        set("kafka-quotas:group:b", "user-prefix:svc-pay-", 1.0);
        set("kafka-quotas:group:c", "user:svc-pay-1", 1.0);
        set("kafka-quotas:group:c", "client-id-prefix:etl", 1.0);
        assertEquals("a", tags("svc-x", "app").get("group"));
        assertEquals("b", tags("svc-pay-2", "app").get("group"));
        assertEquals("c", tags("svc-pay-1", "app").get("group"));
        assertEquals("c", tags("bob", "etl-9").get("group"));
        assertNull(tags("bob", "et").get("group"));
        remove("kafka-quotas:group:b", "user-prefix:svc-pay-");
        assertEquals("a", tags("svc-pay-2", "app").get("group"));
    }

    @Test
    void ofTwoGroupsTheFirstByNameDecidesAndTheMemberIsCounted() {
        set("kafka-quotas:group:b", null, 2.0);
        set("kafka-quotas:group:b", "user:alice", 1.0);
        set("kafka-quotas:group:a", null, 1.0);
        set("kafka-quotas:group:a", "user:alice", 1.0);
        assertEquals("a", tags("alice", "app").get("group"));
        assertEquals(1, callback.getMembersInSeveralGroups());
        remove("kafka-quotas:group:a", "user:alice");
        assertEquals("b", tags("alice", "app").get("group"));
        assertEquals(0, callback.getMembersInSeveralGroups());
    }

    @Test
    void aMembershipThatIsStoredWithTwoKeysLastsUntilBothAreGone() {
        set(PAYMENTS, null, 1000.0);
        set(PAYMENTS, "user:alice", 1.0);
        callback.updateQuota(FETCH, entity(PAYMENTS, "user:alice"), 1.0);
        remove(PAYMENTS, "user:alice");
        assertEquals(IN_PAYMENTS, tags("alice", "app"));
        callback.removeQuota(FETCH, entity(PAYMENTS, "user:alice"));
        assertNull(tags("alice", "app").get("group"));
    }

    @Test
    void whatFollowsNoRuleIsCountedAndHasNoEffect() {
        set(PAYMENTS, "alice", 1.0);
        set(PAYMENTS, DEFAULT, 1.0);
        set("kafka-quotas:group:", null, 1.0);
        set("kafka-quotas:grupo:x", null, 1.0);
        set("kafka-quotas:proportional:user=alice", "all", 1.0);
        set("kafka-quotas:proportional:user", "leaders", 1.0);
        set("kafka-quotas:proportional:group=a,user=b", "leaders", 1.0);
        set("kafka-quotas:proportional:user=%zz", "leaders", 1.0);
        set("kafka-quotas:proportional:user=a+b", "leaders", 1.0);
        set("kafka-quotas:proportional:user=a,user=b", "leaders", 1.0);
        assertEquals(10, callback.getIgnoredQuotas());
        assertEquals(Map.of("user", "", "client-id", "app"), tags("alice", "app"));
        remove("kafka-quotas:grupo:x", null);
        assertEquals(9, callback.getIgnoredQuotas());
    }

    private static Cluster cluster(int... leaders) {
        List<Node> nodes = List.of(new Node(1, "a", 1), new Node(2, "b", 1), new Node(3, "c", 1));
        List<PartitionInfo> partitions = new ArrayList<>();
        for (int number = 0; number < leaders.length; number++) {
            Node leader = leaders[number] == 0 ? null : nodes.get(leaders[number] - 1);
            partitions.add(new PartitionInfo("orders", number, leader, new Node[0], new Node[0]));
        }
        partitions.add(new PartitionInfo("clicks", 0, nodes.get(2), new Node[0], new Node[0]));
        partitions.add(new PartitionInfo("__consumer_offsets", 0, nodes.get(0), new Node[0], new Node[0]));
        return new Cluster("id", nodes, partitions, Set.of(), Set.of());
    }

    @Test
    void aProportionalLimitFollowsTheLeadersOfThisBroker() {
        callback.configure(Map.of("node.id", "1"));
        set("CN=a, b", null, 50.0);
        set("kafka-quotas:proportional:user=CN%3Da%2C%20b", "topic:orders", 100.0);
        assertEquals(50.0, limit("CN=a, b", "app"), "leaders not known: the quota itself");
        assertFalse(callback.isLeadersKnown());
        assertTrue(callback.updateClusterMetadata(cluster(1, 1, 1, 2)));
        assertEquals(75.0, limit("CN=a, b", "app"));
        assertFalse(callback.updateClusterMetadata(cluster(1, 1, 1, 3)), "nothing that this broker counts is different");
        assertTrue(callback.updateClusterMetadata(cluster(2, 2, 0, 1)));
        assertEquals(25.0, limit("CN=a, b", "app"), "a partition without a leader is nobody's");
        callback.updateClusterMetadata(cluster(2, 2, 2, 2));
        assertEquals(25.0, limit("CN=a, b", "app"), "none led: the part of one partition");
        set("kafka-quotas:proportional:user=CN%3Da%2C%20b", "topic:clicks", 100.0);
        assertEquals(20.0, limit("CN=a, b", "app"));
        remove("kafka-quotas:proportional:user=CN%3Da%2C%20b", "topic:clicks");
        remove("kafka-quotas:proportional:user=CN%3Da%2C%20b", "topic:orders");
        assertEquals(50.0, limit("CN=a, b", "app"));
    }

    @Test
    void otherLeadersThatWereAskedForResetEachTypeOnce() {
        callback.configure(Map.of("node.id", "1"));
        set("kafka-quotas:proportional:user=alice", "topic:orders", 100.0);
        set("alice", null, 50.0);
        assertFalse(callback.quotaResetRequired(ClientQuotaType.PRODUCE));
        callback.learn(cluster(1, 1, 1, 2));
        assertEquals(75.0, limit("alice", "app"));
        for (ClientQuotaType type : ClientQuotaType.values()) {
            assertTrue(callback.quotaResetRequired(type));
            assertFalse(callback.quotaResetRequired(type));
        }
        callback.learn(cluster(1, 1, 1, 2));
        assertFalse(callback.quotaResetRequired(ClientQuotaType.PRODUCE), "the same leaders");
    }

    @Test
    void theQueryAsksTheListenerOfBrokersUnlessItIsToldAnother() {
        Map<String, String> own = Map.of(
            "listeners", "PLAINTEXT://:9092", "advertised.listeners", "CLIENTS://b1:9093,Inner://b1:9091",
            "inter.broker.listener.name", "INNER");
        assertEquals(Map.of("bootstrap.servers", "b1:9091"), LeaderQuery.clientSettings(own));
        assertEquals(
            Map.of("bootstrap.servers", "b2:9093", "security.protocol", "SASL_SSL"),
            LeaderQuery.clientSettings(Map.of(
                "listeners", "PLAINTEXT://b1:9092", "quota.groups.admin.bootstrap.servers", "b2:9093",
                "quota.groups.admin.security.protocol", "SASL_SSL")));
        assertNull(LeaderQuery.of(own, cluster -> { }), "nothing asks for it");
        assertNull(LeaderQuery.of(Map.of(LeaderQuery.SECONDS, "5", "process.roles", "controller"), cluster -> { }));
    }

    @Test
    void groupsAndDefaultsCanBeProportionalAndKafkasOwnTopicsDoNotCount() {
        callback.configure(Map.of("broker.id", 3));
        set(PAYMENTS, null, 60.0);
        set(PAYMENTS, "user:alice", 1.0);
        set("kafka-quotas:proportional:group=payments", "leaders", 100.0);
        set(DEFAULT, DEFAULT, 60.0);
        set("kafka-quotas:proportional:user=<default>,client-id=<default>", "leaders", 200.0);
        callback.updateClusterMetadata(cluster(1, 2, 1, 2));
        assertEquals(20.0, limit("alice", "app"));
        assertEquals(40.0, limit("bob", "app"));
        assertEquals(List.of(1, 5), List.of(callback.getPartitionsLed(), callback.getPartitions()));
    }

    @Test
    void decisionsAreInJmxAndGoneAfterTheClose() throws JMException {
        callback.configure(Map.of("node.id", "7"));
        set("kafka-quotas:group:a,b*", null, 60.0);
        set("kafka-quotas:group:a,b*", "user:alice", 1.0);
        tags("alice", "app");
        tags("alice", "app");
        tags("bob", "app");
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        ObjectName status = server.queryNames(new ObjectName("kafka-quotas:type=callback,node=7,*"), null).iterator().next();
        assertEquals(2L, server.getAttribute(status, "GroupDecisions"));
        assertEquals(1L, server.getAttribute(status, "LevelDecisions"));
        assertEquals(1, server.getAttribute(status, "Groups"));
        ObjectName group = server.queryNames(new ObjectName("kafka-quotas:type=callback-group,node=7,*"), null).iterator().next();
        assertEquals("a,b*", ObjectName.unquote(group.getKeyProperty("group")));
        assertEquals(2L, server.getAttribute(group, "Decisions"));
        assertEquals(60.0, server.getAttribute(group, "ProduceLimit"));
        assertEquals(-1.0, server.getAttribute(group, "FetchLimit"));
        remove("kafka-quotas:group:a,b*", null);
        assertTrue(server.isRegistered(group), "it has a member");
        remove("kafka-quotas:group:a,b*", "user:alice");
        assertFalse(server.isRegistered(group));
        callback.close();
        assertFalse(server.isRegistered(status));
    }

    @Test
    void aGroupOfManyMembersIsRemovedWithoutCountingThemEachTime() {
        int many = 32_000;
        assertTimeoutPreemptively(Duration.ofSeconds(20), () -> {
            for (int number = 0; number < many; number++) {
                set(PAYMENTS, "user:u" + number, 1.0);
                set("kafka-quotas:group:others", "user:u" + number, 1.0);
            }
            assertEquals(many, callback.getMembers());
            assertEquals(many, callback.getMembersInSeveralGroups());
            for (int number = 0; number < many; number++) {
                assertEquals(2, callback.getGroups());
                remove(PAYMENTS, "user:u" + number);
            }
            assertEquals(1, callback.getGroups());
            assertEquals(many, callback.getMembers());
            assertEquals(0, callback.getMembersInSeveralGroups());
        });
    }

    @Test
    void aMembershipThatIsStoredTwiceCountsOnce() {
        set(PAYMENTS, "user:alice", 1.0);
        callback.updateQuota(FETCH, entity(PAYMENTS, "user:alice"), 1.0);
        set(PAYMENTS, "user:alice", 2.0);
        remove(PAYMENTS, "user:alice");
        remove(PAYMENTS, "user:alice");
        assertEquals(1, callback.getGroups());
        callback.removeQuota(FETCH, entity(PAYMENTS, "user:alice"));
        assertEquals(0, callback.getGroups());
        assertEquals(0, callback.getMembersInSeveralGroups());
    }

    @Test
    void aPrefixOfMoreThan255CharactersIsIgnoredAndCostsRequestsNothing() {
        set(PAYMENTS, null, 1000.0);
        set(PAYMENTS, "client-id-prefix:" + "x".repeat(255), 1.0);
        set(PAYMENTS, "client-id-prefix:" + "y".repeat(256), 1.0);
        set(PAYMENTS, "user-prefix:" + "z".repeat(32_000), 1.0);
        assertEquals(2, callback.getIgnoredQuotas());
        assertEquals(1, callback.getMembers());
        assertEquals(IN_PAYMENTS, tags("bob", "x".repeat(400)));
        assertTimeoutPreemptively(Duration.ofSeconds(20), () -> {
            String name = "z".repeat(32_000);
            for (int request = 0; request < 300; request++) {
                assertEquals(Map.of("user", "", "client-id", "y"), tags(name, "y"));
            }
        });
        remove(PAYMENTS, "user-prefix:" + "z".repeat(32_000));
        assertEquals(1, callback.getIgnoredQuotas());
    }
}
