package kafkaquotas.recorder;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** What all series recorded in one second, or in addition to an earlier sample of that second. */
final class Sample {
    private final long second;
    private final List<Series> series = new ArrayList<>();
    private long[] amounts = new long[16];
    private long[] throttles = new long[16];

    Sample(long second) {
        this.second = second;
    }

    long second() {
        return second;
    }

    int size() {
        return series.size();
    }

    Series series(int index) {
        return series.get(index);
    }

    long amount(int index) {
        return amounts[index];
    }

    long throttleMs(int index) {
        return throttles[index];
    }

    void add(Series one, long amount, long throttleMs) {
        if (amount == 0L && throttleMs == 0L) {
            return;
        }
        int size = series.size();
        if (size == amounts.length) {
            amounts = Arrays.copyOf(amounts, size * 2);
            throttles = Arrays.copyOf(throttles, size * 2);
        }
        series.add(one);
        amounts[size] = amount;
        throttles[size] = throttleMs;
    }
}
