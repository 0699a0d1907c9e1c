import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Small produce requests of several clients: BOOTSTRAP TOPIC CLIENTS REQUESTS_A_SECOND SECONDS (first a quarter to warm up). */
public final class Load {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        int clients = Integer.parseInt(arguments[2]);
        double rate = Double.parseDouble(arguments[3]) / clients;
        long seconds = Long.parseLong(arguments[4]);
        long start = System.nanoTime();
        long end = start + seconds * 1_000_000_000L;
        long warm = start + seconds * 250_000_000L;
        AtomicLong requests = new AtomicLong();
        List<long[]> latencies = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < clients; number++) {
            Properties properties = new Properties();
            properties.put("bootstrap.servers", arguments[0]);
            properties.put("client.id", "load-" + number);
            properties.put("acks", "1");
            properties.put("enable.idempotence", "false");
            properties.put("linger.ms", "0");
            properties.put("batch.size", "0");
            properties.put("max.in.flight.requests.per.connection", "100");
            KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
            Thread thread = new Thread(() -> {
                long[] own = new long[(int) Math.min(5_000_000L, (long) (rate * seconds * 1.2) + 1000)];
                AtomicLong count = new AtomicLong();
                AtomicLong waiting = new AtomicLong();
                byte[] value = new byte[100];
                double due = System.nanoTime();
                while (System.nanoTime() < end) {
                    long now = System.nanoTime();
                    if (now < due || waiting.get() > 200) {
                        java.util.concurrent.locks.LockSupport.parkNanos(100_000L);
                        due = Math.max(due, now - 1e8);
                        continue;
                    }
                    due += 1e9 / rate;
                    waiting.incrementAndGet();
                    producer.send(new ProducerRecord<>(topic, 0, null, value), (metadata, error) -> {
                        waiting.decrementAndGet();
                        requests.incrementAndGet();
                        long place = count.get();
                        if (now > warm && place < own.length) {
                            own[(int) place] = System.nanoTime() - now;
                            count.set(place + 1);
                        }
                    });
                }
                producer.close(java.time.Duration.ofSeconds(20));
                synchronized (latencies) {
                    latencies.add(Arrays.copyOf(own, (int) count.get()));
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        double wall = (System.nanoTime() - start) / 1e9;
        long[] all = latencies.stream().flatMapToLong(Arrays::stream).sorted().toArray();
        System.out.printf("{\"requests\":%d,\"seconds\":%.3f,\"p50_ms\":%.3f,\"p99_ms\":%.3f}%n", requests.get(), wall,
            all[all.length / 2] / 1e6, all[(int) (all.length * 0.99)] / 1e6);
    }
}
