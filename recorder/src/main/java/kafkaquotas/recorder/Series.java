package kafkaquotas.recorder;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** What is recorded of one kind of one client, or of all clients that share a quota. */
final class Series {
    private static final int SLOTS = SecondSums.SLOTS;

    private final int id;
    private final Kind kind;
    private final String user;
    private final String clientId;
    private final SecondSums amounts;
    private final SecondSums throttles = new SecondSums(1.0);
    private final long[] takenSeconds = new long[SLOTS];
    private final long[] takenAmounts = new long[SLOTS];
    private final long[] takenThrottles = new long[SLOTS];
    private volatile long removedAtMs = Long.MAX_VALUE;

    Series(int id, Kind kind, Map<String, String> tags) {
        this.id = id;
        this.kind = kind;
        // In the tags of a sensor an empty name and no name are the same.
        String sanitized = tags.getOrDefault("user", "");
        this.user = sanitized.isEmpty() ? null : desanitized(sanitized);
        String client = tags.getOrDefault("client-id", "");
        this.clientId = client.isEmpty() ? null : client;
        this.amounts = new SecondSums(kind.unitsPerValue());
    }

    /** As Kafka decodes users of metric tags. Its class moves between releases, and so is not called. */
    private static String desanitized(String name) {
        try {
            return URLDecoder.decode(name, StandardCharsets.UTF_8);
        } catch (RuntimeException error) {
            return name;
        }
    }

    int id() {
        return id;
    }

    Kind kind() {
        return kind;
    }

    /** Null: not known. */
    String user() {
        return user;
    }

    /** Null: not known. */
    String clientId() {
        return clientId;
    }

    SecondSums amounts() {
        return amounts;
    }

    /** Milliseconds of throttles that began in a second. */
    SecondSums throttles() {
        return throttles;
    }

    /** Add what was recorded in a second since the last call for it. Only the sampling thread calls this. */
    void takeInto(Sample sample) {
        int slot = (int) (sample.second() & (SLOTS - 1));
        if (takenSeconds[slot] != sample.second()) {
            takenSeconds[slot] = sample.second();
            takenAmounts[slot] = 0L;
            takenThrottles[slot] = 0L;
        }
        long amount = amounts.sumOf(sample.second());
        long throttle = throttles.sumOf(sample.second());
        sample.add(this, amount - takenAmounts[slot], throttle - takenThrottles[slot]);
        takenAmounts[slot] = amount;
        takenThrottles[slot] = throttle;
    }

    /** Kafka has removed the sensor. */
    void remove(long nowMs) {
        removedAtMs = nowMs;
    }

    boolean isOver(long nowMs) {
        return removedAtMs < nowMs - SLOTS * 1000L;
    }

    void close() {
        amounts.close();
        throttles.close();
    }
}
