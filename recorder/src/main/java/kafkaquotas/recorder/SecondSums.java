package kafkaquotas.recorder;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Collections;
import java.util.List;
import org.apache.kafka.common.metrics.CompoundStat;
import org.apache.kafka.common.metrics.MetricConfig;

/**
 * A statistic of a Kafka sensor: the sums of the last eight seconds of the clock.
 *
 * <p>Kafka calls {@link #record} with the value and the moment that it charges, and with the sensor's lock held, so there is one
 * writer at a time. The recorder's thread reads without a lock: a second's number is set after its sum is valid, and cleared
 * before it is reused. Nothing here waits, allocates or throws.
 *
 * <p>As a compound statistic without named parts it adds no metric: JMX and other reporters do not see it.
 */
final class SecondSums implements CompoundStat {
    static final int SLOTS = 8;
    private static final int MASK = SLOTS - 1;
    private static final long NONE = Long.MIN_VALUE;
    private static final VarHandle CELLS = MethodHandles.arrayElementVarHandle(long[].class);

    private final double unitsPerValue;
    private final long[] seconds = new long[SLOTS];
    private final long[] sums = new long[SLOTS];
    private volatile boolean closed;

    SecondSums(double unitsPerValue) {
        this.unitsPerValue = unitsPerValue;
        java.util.Arrays.fill(seconds, NONE);
    }

    @Override
    public List<NamedMeasurable> stats() {
        return Collections.emptyList();
    }

    @Override
    public void record(MetricConfig config, double value, long timeMs) {
        if (closed) {
            return;
        }
        long second = Math.floorDiv(timeMs, 1000L);
        int slot = (int) (second & MASK);
        long present = seconds[slot];
        // A request that comes a ring later than others counts in the second that took its place: the total stays exact.
        boolean late = present > second && present - second <= SLOTS;
        if (present != second && !late) {
            CELLS.setOpaque(seconds, slot, NONE);
            VarHandle.storeStoreFence();
            CELLS.setOpaque(sums, slot, 0L);
            CELLS.setRelease(seconds, slot, second);
        }
        CELLS.setOpaque(sums, slot, sums[slot] + Math.round(value * unitsPerValue));
    }

    /** The sum of a second so far; 0 for one without a record. Only of the last seven seconds is it certain. */
    long sumOf(long second) {
        int slot = (int) (second & MASK);
        if ((long) CELLS.getAcquire(seconds, slot) != second) {
            return 0L;
        }
        long sum = (long) CELLS.getOpaque(sums, slot);
        VarHandle.loadLoadFence();
        return (long) CELLS.getOpaque(seconds, slot) == second ? sum : 0L;
    }

    /** Sensors keep their statistics for ever: from now on this one does nothing. */
    void close() {
        closed = true;
    }
}
