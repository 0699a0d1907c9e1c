package kafkaquotas.recorder;

import java.util.Arrays;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;

/** What a charge costs with and without the recorder's statistic, on one thread: nanoseconds, medians of rounds in turn. */
public final class RecordCost {
    private static final int TIMES = 2_000_000;

    public static void main(String[] arguments) {
        Metrics metrics = new Metrics();
        Sensor bare = sensor(metrics, "bare");
        Sensor recorded = sensor(metrics, "recorded");
        recorded.add(new SecondSums(1.0));
        double[] without = new double[21];
        double[] with = new double[21];
        for (int round = 0; round < without.length; round++) {
            without[round] = nanos(bare);
            with[round] = nanos(recorded);
        }
        Arrays.sort(without);
        Arrays.sort(with);
        System.out.printf("{\"without_ns\":%.1f,\"with_ns\":%.1f}%n", without[10], with[10]);
        for (int count : new int[] {10, 1_000}) {
            System.out.println(aSecond(count));
        }
    }

    /** Sampling and writing seconds in which each of some series was charged, on a clock of its own. */
    private static String aSecond(int count) {
        try {
            java.nio.file.Path folder = java.nio.file.Files.createTempDirectory("recorder-cost");
            java.util.concurrent.atomic.AtomicLong clock = new java.util.concurrent.atomic.AtomicLong(1_763_860_000_000L);
            DroppedSeconds dropped = new DroppedSeconds();
            java.util.concurrent.BlockingQueue<Sample> samples = new java.util.concurrent.ArrayBlockingQueue<>(64);
            Sampler sampler = new Sampler(clock::get, samples, dropped);
            RecorderConfig config = RecorderConfig.of(
                java.util.Map.of(RecorderConfig.FOLDER, folder.toString(), RecorderConfig.FREE_BYTES, "0"));
            SampleWriter writer = new SampleWriter(() -> config, 1, () -> "cluster", dropped, clock::get);
            Series[] series = new Series[count];
            for (int number = 0; number < count; number++) {
                series[number] = new Series(number, Kind.PRODUCE, java.util.Map.of("user", "user-" + number, "client-id", "app"));
                sampler.add(series[number]);
            }
            java.util.Random chance = new java.util.Random(1);
            java.lang.management.ThreadMXBean threads = java.lang.management.ManagementFactory.getThreadMXBean();
            int seconds = 60;
            long nanos = 0L;
            for (int second = 0; second < 2 * seconds; second++) {
                for (Series one : series) {
                    one.amounts().record(null, chance.nextInt(100_000), clock.get());
                }
                clock.addAndGet(1000L);
                long start = threads.getCurrentThreadCpuTime();
                sampler.takeDue();
                for (Sample sample = samples.poll(); sample != null; sample = samples.poll()) {
                    writer.add(sample);
                }
                nanos += second < seconds ? 0L : threads.getCurrentThreadCpuTime() - start;
            }
            writer.close();
            long bytes = writer.bytesWritten() / (2 * seconds) * 3600;
            try (java.util.stream.Stream<java.nio.file.Path> files = java.nio.file.Files.list(folder)) {
                files.forEach(file -> file.toFile().delete());
            }
            folder.toFile().delete();
            return String.format("{\"series\":%d,\"cpu_ms_a_second\":%.3f,\"bytes_an_hour\":%d}", count, nanos / 1e6 / seconds, bytes);
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    private static Sensor sensor(Metrics metrics, String name) {
        Sensor sensor = metrics.sensor(name);
        MetricConfig config = new MetricConfig().samples(11).quota(Quota.upperBound(1e12));
        sensor.add(metrics.metricName("byte-rate", name), new Rate(), config);
        return sensor;
    }

    private static double nanos(Sensor sensor) {
        java.lang.management.ThreadMXBean threads = java.lang.management.ManagementFactory.getThreadMXBean();
        long start = threads.getCurrentThreadCpuTime();
        for (int time = 0; time < TIMES; time++) {
            sensor.record(100.0, System.currentTimeMillis(), true);
        }
        return (threads.getCurrentThreadCpuTime() - start) / (double) TIMES;
    }
}
