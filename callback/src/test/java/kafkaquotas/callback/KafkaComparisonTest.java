package kafkaquotas.callback;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;

/** Beside the callback of the broker's own jars, both driven by Kafka's quota manager. */
class KafkaComparisonTest {
    private static final String[] USERS = {"alice", "CN=älice, OU=x*y+z~", "<default>", "bob"};
    private static final String[] CLIENT_IDS = {"app", "a:b*", "<default>", "other"};
    private static final int WALKS = 60;
    private static final int STEPS = 40;

    @Test
    void tagsAndLimitsAreThoseOfKafkasOwnCallbackWhateverIsSetAndRemoved() throws ReflectiveOperationException {
        TreeSet<String> kindsOfTags = new TreeSet<>();
        int limited = 0;
        for (int walk = 0; walk < WALKS; walk++) {
            Random random = new Random(walk);
            GroupQuotaCallback own = new GroupQuotaCallback();
            try (KafkaManager kafka = new KafkaManager(null); KafkaManager ours = new KafkaManager(own)) {
                // Groups and totals of other names must not matter to anyone else.
                ours.update("kafka-quotas:group:others", null, 5.0);
                ours.update("kafka-quotas:group:others", "user:carol", 1.0);
                ours.update("kafka-quotas:proportional:user=carol", "leaders", 9.0);
                for (int step = 0; step < STEPS; step++) {
                    String user = chosen(USERS, random);
                    String clientId = user == null ? nonNull(CLIENT_IDS, random) : chosen(CLIENT_IDS, random);
                    Double limit = random.nextInt(5) < 2 ? null : Double.valueOf(1 + random.nextInt(1000));
                    kafka.update(user, clientId, limit);
                    ours.update(user, clientId, limit);
                    limited += compare(kafka.callback(), ours.callback(), kindsOfTags);
                }
            }
            own.close();
        }
        assertEquals(3, kindsOfTags.size(), "users, client-ids and pairs");
        assertTrue(limited > WALKS * STEPS, "the limits compared are not all unlimited");
    }

    private static int compare(ClientQuotaCallback kafka, ClientQuotaCallback own, TreeSet<String> kindsOfTags) {
        int limited = 0;
        for (String user : with(USERS, "nobody")) {
            for (String clientId : with(CLIENT_IDS, "")) {
                KafkaPrincipal principal = new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user);
                Map<String, String> tags = kafka.quotaMetricTags(ClientQuotaType.PRODUCE, principal, clientId);
                Map<String, String> ownTags = own.quotaMetricTags(ClientQuotaType.PRODUCE, principal, clientId);
                assertEquals(tags, ownTags);
                assertEquals(new ArrayList<>(tags.values()), new ArrayList<>(ownTags.values()), "the sensor's name");
                Double limit = kafka.quotaLimit(ClientQuotaType.PRODUCE, tags);
                assertEquals(limit, own.quotaLimit(ClientQuotaType.PRODUCE, tags), () -> user + " " + clientId);
                kindsOfTags.add(tags.get("user").isEmpty() + " " + tags.get("client-id").isEmpty());
                limited += limit == null ? 0 : 1;
            }
        }
        kindsOfTags.remove("true true");
        return limited;
    }

    private static List<String> with(String[] names, String further) {
        List<String> all = new ArrayList<>(List.of(names));
        all.add(further);
        return all;
    }

    private static String chosen(String[] names, Random random) {
        return random.nextInt(3) == 0 ? null : nonNull(names, random);
    }

    private static String nonNull(String[] names, Random random) {
        return random.nextInt(3) == 0 ? Entities.DEFAULT : names[random.nextInt(names.length - 1)];
    }

    @Test
    void usersAreEncodedAsKafkaEncodesThem() {
        Random random = new Random(7);
        for (int round = 0; round < 3000; round++) {
            StringBuilder name = new StringBuilder();
            for (int letter = 0; letter < 1 + random.nextInt(6); letter++) {
                name.appendCodePoint(random.nextInt(4) == 0 ? 0x1F600 + random.nextInt(50) : 1 + random.nextInt(300));
            }
            assertEquals(KafkaManager.sanitized(name.toString()), Names.sanitize(name.toString()));
            assertEquals(name.toString(), Names.desanitize(Names.sanitize(name.toString())));
        }
    }

    @Test
    void kindsOfQuotaAreRememberedByBrokersBefore42() {
        assertTrue(GroupQuotaCallback.remembersKinds("3.9.2"));
        assertTrue(GroupQuotaCallback.remembersKinds("4.1.0-rc1"));
        assertEquals(List.of(false, false, false, false), List.of(
            GroupQuotaCallback.remembersKinds("4.2.0"), GroupQuotaCallback.remembersKinds("4.4.0"),
            GroupQuotaCallback.remembersKinds("5.0.0-SNAPSHOT"), GroupQuotaCallback.remembersKinds("unknown")));
    }
}
