package kafkaquotas.callback;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartitionInfo;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Asks the cluster for the leaders of partitions, where brokers do not tell a callback: before Kafka 4.0 in KRaft mode, and from
 * 5.0 on (KIP-1200).
 *
 * <p>{@code quota.groups.leaders.seconds} switches it on, and is the time between two questions. They go to the broker's own
 * listener for brokers. Settings of an admin client with the prefix {@code quota.groups.admin.} say where else, and log in.
 */
final class LeaderQuery implements AutoCloseable {
    static final String SECONDS = "quota.groups.leaders.seconds";
    static final String ADMIN = "quota.groups.admin.";
    private static final Logger LOG = LoggerFactory.getLogger(LeaderQuery.class);
    private static final long PATIENCE_S = 60;

    private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor(work -> {
        Thread thread = new Thread(work, "quota-groups-leaders");
        thread.setDaemon(true);
        return thread;
    });
    private final Properties client;
    private final Consumer<Cluster> answered;
    private Admin admin;
    private boolean failed;

    private LeaderQuery(Properties client, Consumer<Cluster> answered) {
        this.client = client;
        this.answered = answered;
    }

    /** Null where the settings do not ask for it, and on a node that is no broker. */
    static LeaderQuery of(Map<String, ?> settings, Consumer<Cluster> answered) {
        Object seconds = settings.get(SECONDS);
        Object roles = settings.get("process.roles");
        if (seconds == null || roles != null && !roles.toString().contains("broker")) {
            return null;
        }
        LeaderQuery query = new LeaderQuery(clientSettings(settings), answered);
        query.timer.scheduleWithFixedDelay(query::ask, 0, Math.max(1, Long.parseLong(seconds.toString().trim())), TimeUnit.SECONDS);
        return query;
    }

    /** Those with the prefix, and the address of the broker's own listener for brokers unless they name another. */
    static Properties clientSettings(Map<String, ?> settings) {
        Properties client = new Properties();
        Object name = settings.get("inter.broker.listener.name");
        Object addresses = settings.get("advertised.listeners");
        for (String listener : String.valueOf(addresses == null ? settings.get("listeners") : addresses).split(",")) {
            String[] parts = listener.trim().split("://", 2);
            if (parts.length == 2 && parts[0].equalsIgnoreCase(name == null ? "PLAINTEXT" : name.toString())) {
                client.put("bootstrap.servers", parts[1]);
            }
        }
        settings.forEach((key, value) -> {
            if (key.startsWith(ADMIN) && value != null) {
                client.put(key.substring(ADMIN.length()), value.toString());
            }
        });
        return client;
    }

    private void ask() {
        try {
            if (admin == null) {
                admin = Admin.create(client);
            }
            answered.accept(cluster());
            failed = false;
        } catch (ExecutionException | TimeoutException | RuntimeException error) {
            // The leaders that are known stay, and the next question may be answered. A log line for each would fill the disk.
            if (!failed) {
                LOG.warn("The quota callback could not ask for the leaders of partitions and goes on trying", error);
            }
            failed = true;
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private Cluster cluster() throws ExecutionException, InterruptedException, TimeoutException {
        Set<String> names = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get(PATIENCE_S, TimeUnit.SECONDS);
        List<PartitionInfo> partitions = new ArrayList<>();
        Set<Node> leaders = new HashSet<>();
        for (TopicDescription topic : admin.describeTopics(names).allTopicNames().get(PATIENCE_S, TimeUnit.SECONDS).values()) {
            for (TopicPartitionInfo one : topic.partitions()) {
                if (one.leader() != null) {
                    leaders.add(one.leader());
                }
                partitions.add(new PartitionInfo(topic.name(), one.partition(), one.leader(), new Node[0], new Node[0]));
            }
        }
        return new Cluster(null, leaders, partitions, Set.of(), Set.of());
    }

    @Override
    public void close() {
        timer.shutdownNow();
        Admin opened = admin;
        if (opened != null) {
            opened.close(java.time.Duration.ZERO);
        }
    }
}
