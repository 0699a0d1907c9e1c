package kafkaquotas.recorder;

import java.util.ArrayList;
import java.util.List;

/** Seconds that could not be recorded, as ranges that wait to be written. Bounded: a long outage is one range. */
final class DroppedSeconds {
    /** From {@code first} to {@code last}, both included. */
    static final class Range {
        final long first;
        final long last;
        final String reason;

        Range(long first, long last, String reason) {
            this.first = first;
            this.last = last;
            this.reason = reason;
        }
    }

    private static final int MOST_RANGES = 64;

    private final List<Range> waiting = new ArrayList<>();
    private long total;

    synchronized void add(long first, long last, String reason) {
        total += last - first + 1;
        int end = waiting.size() - 1;
        if (end >= 0) {
            Range previous = waiting.get(end);
            boolean near = previous.reason.equals(reason) && first <= previous.last + 2 && last >= previous.first - 2;
            if (near || waiting.size() >= MOST_RANGES) {
                waiting.set(end, new Range(Math.min(first, previous.first), Math.max(last, previous.last), previous.reason));
                return;
            }
        }
        waiting.add(new Range(first, last, reason));
    }

    /** The ranges that wait, which then wait no more. */
    synchronized List<Range> take() {
        List<Range> taken = new ArrayList<>(waiting);
        waiting.clear();
        return taken;
    }

    /** Ranges that could not be written wait again. */
    synchronized void putBack(List<Range> ranges) {
        waiting.addAll(0, ranges);
    }

    /** All seconds that were ever dropped. */
    synchronized long total() {
        return total;
    }
}
