package kafkaquotas.recorder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.metrics.KafkaMetricsContext;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Avg;
import org.apache.kafka.common.metrics.stats.Rate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** With Kafka's own registry and sensors, created as a broker creates them. */
class QuotaRecorderTest {
    private static final Pattern AMOUNT = Pattern.compile("\\[\"s\",\\d+,\\[([-0-9,]*)\\](?:,\\[([-0-9,]*)\\])?\\]");

    @TempDir
    Path folder;

    private final Metrics metrics = new Metrics();
    private final List<QuotaRecorder> recorders = new ArrayList<>();

    @AfterEach
    void closeAll() {
        recorders.forEach(QuotaRecorder::close);
        metrics.close();
    }

    private QuotaRecorder add() {
        QuotaRecorder recorder = new QuotaRecorder();
        recorder.configure(Map.of(RecorderConfig.FOLDER, folder.toString(), RecorderConfig.FREE_BYTES, "0", "node.id", "3"));
        recorder.contextChange(new KafkaMetricsContext("kafka.server", Map.of("kafka.cluster.id", "abc", "kafka.node.id", "3")));
        metrics.addReporter(recorder);
        recorders.add(recorder);
        return recorder;
    }

    private Sensor quotaSensor(String user, String client) {
        Map<String, String> tags = new LinkedHashMap<>();
        tags.put("user", user);
        tags.put("client-id", client);
        Sensor sensor = metrics.sensor("Produce-" + user + ":" + client);
        MetricConfig config = new MetricConfig().samples(11).quota(Quota.upperBound(1e6));
        sensor.add(metrics.metricName("byte-rate", "Produce", tags), new Rate(), config);
        return sensor;
    }

    private Map<String, Long> recorded() throws IOException {
        Map<String, Long> amounts = new LinkedHashMap<>();
        Map<String, String> names = new LinkedHashMap<>();
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : (Iterable<Path>) files.sorted()::iterator) {
                names.clear();
                try (InputStream in = new GZIPInputStream(Files.newInputStream(file))) {
                    for (String line : new String(in.readAllBytes(), StandardCharsets.UTF_8).split("\n")) {
                        if (line.startsWith("[\"c\",")) {
                            names.put(line.split(",", 3)[1], line.split(",", 3)[2]);
                        }
                        Matcher matcher = AMOUNT.matcher(line);
                        if (matcher.matches()) {
                            add(amounts, names, matcher.group(1), "");
                            add(amounts, names, matcher.group(2), "throttled ");
                        }
                    }
                }
            }
        }
        return amounts;
    }

    private static void add(Map<String, Long> amounts, Map<String, String> names, String pairs, String prefix) {
        String[] numbers = pairs == null || pairs.isEmpty() ? new String[0] : pairs.split(",");
        for (int index = 0; index < numbers.length; index += 2) {
            amounts.merge(prefix + names.get(numbers[index]), Long.parseLong(numbers[index + 1]), Long::sum);
        }
    }

    @Test
    void aSensorIsRecordedFromItsFirstValueAndJmxSeesNothing() throws IOException {
        QuotaRecorder recorder = add();
        int before = metrics.metrics().size();
        Sensor sensor = quotaSensor("alice", "app");
        assertEquals(before + 1, metrics.metrics().size());
        sensor.record(100.0, System.currentTimeMillis(), false);
        sensor.record(23.0, System.currentTimeMillis(), false);
        recorder.close();
        assertEquals(Map.of("\"produce\",\"alice\",\"app\"]", 123L), recorded());
        assertEquals(0L, recorder.getSensorsMissed());
    }

    @Test
    void throttlesAndQuotaViolationsAreRecordedAndStillRaised() throws IOException {
        QuotaRecorder recorder = add();
        Sensor sensor = quotaSensor("", "app");
        assertThrows(QuotaViolationException.class, () -> sensor.record(1e9, System.currentTimeMillis(), true));
        Map<String, String> tags = new LinkedHashMap<>();
        tags.put("user", "");
        tags.put("client-id", "app");
        Sensor throttle = metrics.sensor("ProduceThrottleTime-:app");
        throttle.add(metrics.metricName("throttle-time", "Produce", tags), new Avg());
        throttle.record(750.0, System.currentTimeMillis(), false);
        recorder.close();
        assertEquals(
            Map.of("\"produce\",null,\"app\"]", 1_000_000_000L, "throttled \"produce\",null,\"app\"]", 750L), recorded());
    }

    @Test
    void threadsThatRecordAtOnceLoseNothing() throws Exception {
        QuotaRecorder recorder = add();
        Sensor sensor = quotaSensor("alice", "app");
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < 4; number++) {
            Thread thread = new Thread(() -> {
                for (int time = 0; time < 50_000; time++) {
                    sensor.record(7.0, System.currentTimeMillis(), false);
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        recorder.close();
        assertEquals(Map.of("\"produce\",\"alice\",\"app\"]", 4L * 50_000L * 7L), recorded());
    }

    @Test
    void theSecondRecorderOfARegistryDoesNothing() throws IOException {
        QuotaRecorder first = add();
        QuotaRecorder second = add();
        quotaSensor("alice", "app").record(5.0, System.currentTimeMillis(), false);
        second.close();
        first.close();
        assertEquals(Map.of("\"produce\",\"alice\",\"app\"]", 5L), recorded());
    }

    @Test
    void aRecorderThatIsAddedToARunningBrokerFindsTheSensorsAndOneThatIsTakenAwayStops() throws Exception {
        Sensor sensor = quotaSensor("alice", "app");
        QuotaRecorder recorder = add();
        long deadline = System.nanoTime() + 10_000_000_000L;
        while (recorder.getSeries() == 0 && System.nanoTime() < deadline) {
            Thread.sleep(10);
        }
        sensor.record(11.0, System.currentTimeMillis(), false);
        metrics.removeReporter(recorder);
        recorder.close();
        sensor.record(13.0, System.currentTimeMillis(), false);
        QuotaRecorder again = add();
        again.close();
        assertEquals(Map.of("\"produce\",\"alice\",\"app\"]", 11L), recorded());
    }

    @Test
    void aWrongSettingSwitchesItOffAndTheBrokerGoesOn() throws IOException {
        List<Map<String, String>> wrong = List.of(
            Map.of(),
            Map.of(RecorderConfig.FOLDER, ""),
            Map.of(RecorderConfig.FOLDER, "a\0b"),
            Map.of(RecorderConfig.FOLDER, folder.toString(), RecorderConfig.FILE_BYTES, "12"),
            Map.of(RecorderConfig.FOLDER, folder.toString(), RecorderConfig.FILE_BYTES, "1e999"),
            Map.of(RecorderConfig.FOLDER, folder.toString(), RecorderConfig.KINDS, "nonsense"),
            Map.of(RecorderConfig.FOLDER, folder.toString(), RecorderConfig.FLUSH_SECONDS, "601"));
        for (Map<String, String> settings : wrong) {
            QuotaRecorder recorder = new QuotaRecorder();
            recorder.configure(settings);
            recorder.contextChange(new KafkaMetricsContext("kafka.server", Map.of("kafka.cluster.id", "abc")));
            metrics.addReporter(recorder);
            recorders.add(recorder);
        }
        quotaSensor("alice", "app").record(5.0, System.currentTimeMillis(), false);
        assertEquals(Map.of(), recorded());
        QuotaRecorder right = add();
        right.close();
    }

    @Test
    void settingsAreCheckedAndMayChange() {
        QuotaRecorder recorder = add();
        assertTrue(recorder.reconfigurableConfigs().contains(RecorderConfig.TOTAL_BYTES));
        Map<String, String> wrong = Map.of(RecorderConfig.FOLDER, "x", RecorderConfig.FILE_BYTES, "12");
        assertThrows(ConfigException.class, () -> recorder.validateReconfiguration(wrong));
        Map<String, String> kinds = Map.of(RecorderConfig.FOLDER, "x", RecorderConfig.KINDS, "produce,nonsense");
        assertThrows(ConfigException.class, () -> recorder.validateReconfiguration(kinds));
    }
}
