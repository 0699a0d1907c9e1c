package kafkaquotas.benchmark;

import java.io.IOException;
import java.io.PrintWriter;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.common.metrics.stats.Rate;

/** The other way to record: read each rate once a second, with Kafka's public interface, and write rate times window. */
public final class PolledRates implements MetricsReporter {
    private final Map<MetricName, KafkaMetric> metrics = new ConcurrentHashMap<>();
    private String file;

    @Override
    public void configure(Map<String, ?> settings) {
        file = String.valueOf(settings.get("benchmark.polled.file"));
    }

    @Override
    public void init(List<KafkaMetric> known) {
        known.forEach(this::metricChange);
        Thread thread = new Thread(this::poll, "polled-rates");
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void metricChange(KafkaMetric metric) {
        if ("byte-rate".equals(metric.metricName().name()) && metric.isMeasurable() && metric.measurable() instanceof Rate) {
            metrics.put(metric.metricName(), metric);
        }
    }

    @Override
    public void metricRemoval(KafkaMetric metric) {
        metrics.remove(metric.metricName());
    }

    private void poll() {
        try (PrintWriter out = new PrintWriter(file, "UTF-8")) {
            while (true) {
                Thread.sleep(1000L - System.currentTimeMillis() % 1000L);
                long now = System.currentTimeMillis();
                for (Map.Entry<MetricName, KafkaMetric> one : metrics.entrySet()) {
                    KafkaMetric metric = one.getValue();
                    Rate rate = (Rate) metric.measurable();
                    double value = (Double) metric.metricValue();
                    double held = value * rate.windowSize(metric.config(), now) / 1000.0;
                    out.printf("%d\t%s\t%s\t%s\t%.3f%n", now, one.getKey().group(), one.getKey().tags().get("user"),
                        one.getKey().tags().get("client-id"), held);
                }
                out.flush();
            }
        } catch (IOException | InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        metrics.clear();
    }
}
