package kafkaquotas.recorder;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import javax.management.JMException;
import javax.management.ObjectName;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.MetricsContext;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.common.metrics.Sensor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Records what a broker charges to its clients, second by second, in files that {@code kafka-quotas backtest} reads.
 *
 * <p>{@code metric.reporters=kafkaquotas.recorder.QuotaRecorder} and {@code quota.recorder.folder=/path} switch it on.
 */
public final class QuotaRecorder implements MetricsReporter, RecorderStatusMXBean {
    private static final Logger LOG = LoggerFactory.getLogger(QuotaRecorder.class);
    private static final int MOST_WAITING = 64;
    private static final long CLOSE_MS = 5000L;
    /** A combined node makes a reporter for each of its roles, which share one registry: only the first records. */
    private static final Map<Metrics, QuotaRecorder> ACTIVE = Collections.synchronizedMap(new WeakHashMap<>());

    private final Map<Object, Series> series = new ConcurrentHashMap<>();
    private final Queue<KafkaMetric> later = new ConcurrentLinkedQueue<>();
    private final AtomicInteger nextId = new AtomicInteger();
    private final AtomicLong missed = new AtomicLong();
    private final BlockingQueue<Sample> samples = new ArrayBlockingQueue<>(MOST_WAITING);
    private final DroppedSeconds dropped = new DroppedSeconds();
    private final Sampler sampler = new Sampler(System::currentTimeMillis, samples, dropped);
    private volatile RecorderConfig config;
    private volatile String cluster;
    private volatile BrokerSensors sensors;
    private volatile boolean closing;
    private volatile int broker = -1;
    private SampleWriter writer;
    private Thread sampling;
    private Thread writing;
    private ObjectName mbean;

    /** A broker does not start when this throws: a wrong setting switches the recorder off. */
    @Override
    public void configure(Map<String, ?> settings) {
        try {
            config = RecorderConfig.of(settings);
        } catch (RuntimeException error) {
            LOG.error("The quota recorder is switched off, and the broker goes on: {}. Correct the setting and restart the broker",
                error.getMessage());
            closing = true;
        }
        for (String name : new String[] {"node.id", "broker.id"}) {
            Object value = settings.get(name);
            if (value != null && broker < 0) {
                broker = numberOf(value);
            }
        }
    }

    @Override
    public void contextChange(MetricsContext context) {
        Map<String, String> labels = context.contextLabels();
        cluster = labels.get("kafka.cluster.id");
        String node = labels.getOrDefault("kafka.node.id", labels.get("kafka.broker.id"));
        if (node != null) {
            broker = numberOf(node);
        }
    }

    @Override
    public void init(List<KafkaMetric> metrics) {
        try {
            for (KafkaMetric metric : metrics) {
                reach(metric);
            }
        } catch (RuntimeException | LinkageError error) {
            LOG.error("The quota recorder is switched off, and the broker goes on", error);
            closing = true;
        }
        // Kafka calls this with the registry's lock: sensors, whose locks come first, wait for the sampling thread.
        later.addAll(metrics);
    }

    @Override
    public void metricChange(KafkaMetric metric) {
        if (closing) {
            return;
        }
        try {
            reach(metric);
            if (!closing && sensors != null && kindOf(metric.metricName()) != null) {
                attach(metric, true);
            }
        } catch (RuntimeException | LinkageError error) {
            // On a request's thread: whatever it is, the request goes on.
            miss(metric.metricName(), error.toString());
        }
    }

    @Override
    public void metricRemoval(KafkaMetric metric) {
        Kind kind = kindOf(metric.metricName());
        if (kind != null && kind.metric().equals(metric.metricName().name())) {
            Series removed = series.remove(keyOf(kind, metric.metricName()));
            if (removed != null) {
                removed.remove(System.currentTimeMillis());
            }
        }
    }

    @Override
    public Set<String> reconfigurableConfigs() {
        return RecorderConfig.reconfigurable();
    }

    @Override
    public void validateReconfiguration(Map<String, ?> settings) throws ConfigException {
        RecorderConfig.of(settings);
    }

    @Override
    public void reconfigure(Map<String, ?> settings) {
        config = RecorderConfig.of(settings);
    }

    @Override
    public void close() {
        Thread sampler;
        Thread writer;
        synchronized (this) {
            closing = true;
            sampler = sampling;
            writer = writing;
        }
        try {
            if (sampler != null) {
                sampler.interrupt();
                // A reporter that is taken off a running broker is closed with the registry's lock, which requests may need.
                if (!Thread.holdsLock(sensors.registry())) {
                    sampler.join(CLOSE_MS);
                    writer.join(CLOSE_MS);
                }
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
        unregister();
        if (sensors != null) {
            ACTIVE.remove(sensors.registry(), this);
        }
    }

    private void reach(KafkaMetric metric) {
        if (sensors == null && !closing) {
            BrokerSensors behind = BrokerSensors.behind(metric);
            if (behind != null) {
                begin(behind);
            }
        }
    }

    private synchronized void begin(BrokerSensors behind) {
        if (sensors != null || closing) {
            return;
        }
        if (ACTIVE.putIfAbsent(behind.registry(), this) != null) {
            LOG.info("Another quota recorder of this process records already: this one does nothing");
            closing = true;
            return;
        }
        sensors = behind;
        writer = new SampleWriter(() -> config, broker, () -> cluster, dropped, System::currentTimeMillis);
        sampling = start("quota-rec-sample", this::sample);
        writing = start("quota-rec-write", this::write);
        register();
        LOG.info("The quota recorder of broker {} writes to {}", broker, config.folder());
    }

    /** {@code now}: Kafka is creating the sensor in this thread, which has its lock. */
    private void attach(KafkaMetric metric, boolean now) {
        MetricName name = metric.metricName();
        Kind kind = kindOf(name);
        if (kind == null || !config.kinds().contains(kind)) {
            return;
        }
        Sensor sensor = sensors.sensorOf(kind, name);
        if (sensor == null) {
            miss(name, "Kafka has no sensor of this name");
            return;
        }
        if (now && !Thread.holdsLock(sensor)) {
            later.add(metric);
            return;
        }
        Series one = series.computeIfAbsent(keyOf(kind, name), key -> newSeries(kind, name));
        sensor.add(Kind.THROTTLE_METRIC.equals(name.name()) ? one.throttles() : one.amounts());
    }

    private void attachLater(KafkaMetric metric) {
        try {
            attach(metric, false);
        } catch (RuntimeException | LinkageError error) {
            miss(metric.metricName(), error.toString());
        }
    }

    private Series newSeries(Kind kind, MetricName name) {
        Series made = new Series(nextId.getAndIncrement(), kind, name.tags());
        sampler.add(made);
        return made;
    }

    private void sample() {
        while (!closing) {
            for (KafkaMetric metric = later.poll(); metric != null; metric = later.poll()) {
                attachLater(metric);
            }
            long waitMs = sampler.takeDue();
            try {
                Thread.sleep(waitMs);
            } catch (InterruptedException error) {
                break;
            }
        }
        sampler.takeRest();
    }

    private void write() {
        while (true) {
            Sample sample = null;
            boolean last = closing && !sampling.isAlive();
            try {
                sample = samples.poll(last ? 0L : 500L, TimeUnit.MILLISECONDS);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                last = true;
            }
            writer.add(sample);
            if (last && sample == null) {
                writer.close();
                return;
            }
        }
    }

    private Thread start(String name, Runnable work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Throwable error) {
                LOG.error("The quota recorder has stopped; the broker goes on", error);
                closing = true;
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private void miss(MetricName name, String why) {
        if (missed.getAndIncrement() == 0L) {
            LOG.warn("The quota recorder cannot record {}: {}. Further ones are only counted", name, why);
        }
    }

    private static Kind kindOf(MetricName name) {
        Kind kind = Kind.ofGroup(name.group());
        boolean known = kind != null && (kind.metric().equals(name.name()) || Kind.THROTTLE_METRIC.equals(name.name()));
        return known && !name.tags().isEmpty() ? kind : null;
    }

    private static Object keyOf(Kind kind, MetricName name) {
        return Map.entry(kind, name.tags());
    }

    private static int numberOf(Object value) {
        try {
            return Integer.parseInt(value.toString().trim());
        } catch (NumberFormatException error) {
            return -1;
        }
    }

    private void register() {
        try {
            mbean = new ObjectName("kafka-quotas:type=recorder,node=" + broker);
            ManagementFactory.getPlatformMBeanServer().registerMBean(this, mbean);
        } catch (JMException error) {
            LOG.info("The quota recorder's own figures are not in JMX: {}", error.toString());
            mbean = null;
        }
    }

    private void unregister() {
        try {
            if (mbean != null) {
                ManagementFactory.getPlatformMBeanServer().unregisterMBean(mbean);
                mbean = null;
            }
        } catch (JMException error) {
            LOG.debug("The quota recorder's figures were gone already", error);
        }
    }

    @Override
    public int getSeries() {
        return sampler.series();
    }

    @Override
    public long getSecondsWritten() {
        return writer == null ? 0L : writer.secondsWritten();
    }

    @Override
    public long getSecondsDropped() {
        return dropped.total();
    }

    @Override
    public long getBytesWritten() {
        return writer == null ? 0L : writer.bytesWritten();
    }

    @Override
    public long getThreadNanos() {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long nanos = 0L;
        for (Thread thread : new Thread[] {sampling, writing}) {
            nanos += thread == null ? 0L : Math.max(0L, threads.getThreadCpuTime(thread.getId()));
        }
        return nanos;
    }

    @Override
    public long getSensorsMissed() {
        return missed.get();
    }
}
