package kafkaquotas.recorder;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.LongSupplier;

/**
 * Takes each second's sums from all series, one second after it has ended, and hands them to the writer.
 *
 * <p>It never waits for the writer: a sample that finds the queue full is dropped and counted.
 */
final class Sampler {
    /** A request may be charged so many seconds after the moment that Kafka noted for it, and still count there. */
    private static final int LATE_SECONDS = 4;
    /** The newest second that is over for a second. */
    private static final int DELAY_SECONDS = 2;

    private final LongSupplier clockMs;
    private final BlockingQueue<Sample> samples;
    private final DroppedSeconds dropped;
    private final Queue<Series> added = new ConcurrentLinkedQueue<>();
    private final List<Series> series = new ArrayList<>();
    private long next;
    private long first;
    private volatile int size;

    Sampler(LongSupplier clockMs, BlockingQueue<Sample> samples, DroppedSeconds dropped) {
        this.clockMs = clockMs;
        this.samples = samples;
        this.dropped = dropped;
        this.first = Math.floorDiv(clockMs.getAsLong(), 1000L);
        this.next = first;
    }

    /** Any thread may add a series; it waits for nothing. */
    void add(Series one) {
        added.add(one);
    }

    int series() {
        return size;
    }

    /** Take what is due, and say how many milliseconds remain until more is. */
    long takeDue() {
        long now = clockMs.getAsLong();
        long newest = Math.floorDiv(now, 1000L) - DELAY_SECONDS;
        if (next > newest + DELAY_SECONDS + LATE_SECONDS) {
            // The clock was set back: these seconds occur again, and what they have is added.
            next = newest;
            first = newest;
        }
        long oldest = newest - LATE_SECONDS + 1;
        if (next < oldest) {
            dropped.add(next, oldest - 1, "the sampling thread had no processor");
            next = oldest;
        }
        takeNew();
        while (next <= newest) {
            for (long late = Math.max(first, next - LATE_SECONDS); late < next; late++) {
                take(late, false);
            }
            take(next, true);
            next++;
        }
        series.removeIf(one -> one.isOver(now));
        size = series.size();
        return 1000L - Math.floorMod(clockMs.getAsLong(), 1000L);
    }

    /** Take everything up to now, for the last time. */
    void takeRest() {
        takeNew();
        long present = Math.floorDiv(clockMs.getAsLong(), 1000L);
        for (long second = Math.max(first, present - SecondSums.SLOTS + 1); second <= present; second++) {
            take(second, second >= next);
        }
        for (Series one : series) {
            one.close();
        }
    }

    private void takeNew() {
        for (Series one = added.poll(); one != null; one = added.poll()) {
            series.add(one);
        }
    }

    /** {@code always}: also when nothing was recorded, since a silent second was recorded too. */
    private void take(long second, boolean always) {
        Sample sample = new Sample(second);
        for (Series one : series) {
            one.takeInto(sample);
        }
        if ((always || sample.size() > 0) && !samples.offer(sample)) {
            dropped.add(second, second, "the writing thread was behind");
        }
    }
}
