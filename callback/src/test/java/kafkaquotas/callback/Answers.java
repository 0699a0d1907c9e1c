package kafkaquotas.callback;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;

/**
 * The callback as a program, for comparison with other implementations: a line for each call, and a line for each answer.
 *
 * <p>Fields are separated by tabs and percent-encoded: {@code set|remove TYPE USER CLIENT-ID VALUE}, where a name is
 * {@code =name}, {@code *} for the default or empty; {@code ask TYPE USER CLIENT-ID}; {@code lead NODE TOPIC LEADER...}; {@code new} is another broker.
 */
final class Answers {
    private Answers() {
    }

    public static void main(String[] arguments) throws IOException {
        boolean remembersKinds = Boolean.parseBoolean(arguments[0]);
        GroupQuotaCallback callback = new GroupQuotaCallback(remembersKinds);
        List<Node> nodes = List.of(new Node(1, "a", 1), new Node(2, "b", 1), new Node(3, "c", 1));
        List<PartitionInfo> partitions = new ArrayList<>();
        StringBuilder out = new StringBuilder();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t", -1);
            for (int index = 0; index < fields.length; index++) {
                fields[index] = URLDecoder.decode(fields[index], StandardCharsets.UTF_8);
            }
            if (fields[0].equals("new")) {
                callback.close();
                callback = new GroupQuotaCallback(remembersKinds);
                partitions.clear();
                continue;
            }
            if (fields[0].equals("lead")) {
                callback.configure(Map.of("node.id", fields[1]));
                for (int number = 3; number < fields.length; number++) {
                    Node leader = nodes.get(Integer.parseInt(fields[number]) - 1);
                    partitions.add(new PartitionInfo(fields[2], number - 3, leader, new Node[0], new Node[0]));
                }
                callback.updateClusterMetadata(new Cluster("id", nodes, partitions, Set.of(), Set.of()));
                continue;
            }
            ClientQuotaType type = ClientQuotaType.valueOf(fields[1]);
            if (fields[0].equals("ask")) {
                Map<String, String> tags = callback.quotaMetricTags(type, new KafkaPrincipal("User", fields[2]), fields[3]);
                for (String tag : new String[] {"user", "client-id", "group"}) {
                    out.append(Names.sanitize(tags.getOrDefault(tag, ""))).append('\t');
                }
                out.append(callback.quotaLimit(type, tags)).append('\n');
            } else if (fields[0].equals("set")) {
                callback.updateQuota(type, Entities.entity(name(fields[2]), name(fields[3])), Double.parseDouble(fields[4]));
            } else {
                callback.removeQuota(type, Entities.entity(name(fields[2]), name(fields[3])));
            }
        }
        System.out.write(out.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
        callback.close();
    }

    private static String name(String field) {
        return field.isEmpty() ? null : field.equals("*") ? Entities.DEFAULT : field.substring(1);
    }
}
