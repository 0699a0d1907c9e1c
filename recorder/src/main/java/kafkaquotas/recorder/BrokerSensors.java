package kafkaquotas.recorder;

import java.lang.reflect.Field;
import java.util.Map;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Sensor;

/**
 * The broker's own {@link Metrics}, and from there its sensors.
 *
 * <p>A reporter is given metrics, not sensors. Kafka's first metric, the number of all metrics, is a function of the registry, and
 * refers to it. This is the only place that depends on anything but Kafka's public classes.
 */
final class BrokerSensors {
    private static final String COUNT_GROUP = "kafka-metrics-count";

    private final Metrics metrics;

    private BrokerSensors(Metrics metrics) {
        this.metrics = metrics;
    }

    /** The registry behind one of its metrics; null when this metric does not refer to it. */
    static BrokerSensors behind(KafkaMetric metric) {
        if (!COUNT_GROUP.equals(metric.metricName().group()) || !metric.isMeasurable()) {
            return null;
        }
        Object function = metric.measurable();
        try {
            for (Field field : function.getClass().getDeclaredFields()) {
                if (Metrics.class.isAssignableFrom(field.getType())) {
                    field.setAccessible(true);
                    return new BrokerSensors((Metrics) field.get(function));
                }
            }
        } catch (ReflectiveOperationException | RuntimeException error) {
            return null;
        }
        return null;
    }

    /** The same for two reporters of one broker. */
    Metrics registry() {
        return metrics;
    }

    /** The sensor of a quota metric; null when it has another name. */
    Sensor sensorOf(Kind kind, MetricName name) {
        String prefix = kind.group() + (Kind.THROTTLE_METRIC.equals(name.name()) ? "ThrottleTime-" : "-");
        Sensor sensor = metrics.getSensor(prefix + String.join(":", name.tags().values()));
        if (sensor != null) {
            return sensor;
        }
        // The tags of a metric begin with those of all metrics of the broker, which sensor names do not have.
        Map<String, String> common = metrics.config().tags();
        StringBuilder suffix = new StringBuilder();
        for (Map.Entry<String, String> tag : name.tags().entrySet()) {
            if (!common.containsKey(tag.getKey())) {
                suffix.append(suffix.length() == 0 ? "" : ":").append(tag.getValue());
            }
        }
        return metrics.getSensor(prefix + suffix);
    }
}
