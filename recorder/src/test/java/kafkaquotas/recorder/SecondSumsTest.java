package kafkaquotas.recorder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class SecondSumsTest {
    private static final long SECOND = 1_763_860_000L;

    @Test
    void aValueCountsInTheSecondOfItsMoment() {
        SecondSums sums = new SecondSums(1.0);
        sums.record(null, 100.0, SECOND * 1000);
        sums.record(null, 20.0, SECOND * 1000 + 999);
        sums.record(null, 3.0, SECOND * 1000 + 1000);
        assertEquals(120L, sums.sumOf(SECOND));
        assertEquals(3L, sums.sumOf(SECOND + 1));
        assertEquals(0L, sums.sumOf(SECOND - 1));
    }

    @Test
    void aChargeThatKafkaTakesBackLeavesNothing() {
        SecondSums sums = new SecondSums(1.0);
        sums.record(null, 5000.0, SECOND * 1000 + 7);
        sums.record(null, -5000.0, SECOND * 1000 + 7);
        assertEquals(0L, sums.sumOf(SECOND));
    }

    @Test
    void percentSecondsBecomeWholeNanoseconds() {
        SecondSums sums = new SecondSums(Kind.REQUEST.unitsPerValue());
        long expected = 0L;
        for (long nanos = 1L; nanos < 5_000_000L; nanos += 777L) {
            sums.record(null, nanos * 100.0 / 1e9, SECOND * 1000);
            expected += nanos;
        }
        assertEquals(expected, sums.sumOf(SECOND));
    }

    @Test
    void aValueThatIsLateByAFewSecondsKeepsItsSecondAndLaterStillTheTotal() {
        SecondSums sums = new SecondSums(1.0);
        sums.record(null, 1.0, (SECOND + 5) * 1000);
        sums.record(null, 2.0, SECOND * 1000);
        assertEquals(2L, sums.sumOf(SECOND));
        sums.record(null, 4.0, (SECOND + SecondSums.SLOTS) * 1000);
        sums.record(null, 8.0, SECOND * 1000);
        assertEquals(12L, sums.sumOf(SECOND + SecondSums.SLOTS));
        assertEquals(0L, sums.sumOf(SECOND));
    }

    @Test
    void aClockThatIsSetBackStartsAnew() {
        SecondSums sums = new SecondSums(1.0);
        sums.record(null, 1.0, (SECOND + 3600) * 1000);
        sums.record(null, 2.0, SECOND * 1000);
        assertEquals(2L, sums.sumOf(SECOND));
    }

    @Test
    void aClosedStatisticRecordsNothing() {
        SecondSums sums = new SecondSums(1.0);
        sums.close();
        sums.record(null, 1.0, SECOND * 1000);
        assertEquals(0L, sums.sumOf(SECOND));
    }

    @Test
    void aReaderWithoutALockNeverSeesTheSumOfAnotherSecond() throws InterruptedException {
        SecondSums sums = new SecondSums(1.0);
        AtomicLong present = new AtomicLong(1_000_003L);
        AtomicBoolean going = new AtomicBoolean(true);
        // Second n only ever gets values of n, so each sum is a multiple of n and at most 50 of them.
        Thread writer = new Thread(() -> {
            while (going.get()) {
                long second = present.incrementAndGet();
                for (int time = 0; time < 50; time++) {
                    sums.record(null, second, second * 1000);
                }
            }
        });
        writer.start();
        int seen = 0;
        long deadline = System.nanoTime() + 20_000_000_000L;
        try {
            while (seen < 100_000 && System.nanoTime() < deadline) {
                long second = present.get() - seen % SecondSums.SLOTS;
                long sum = sums.sumOf(second);
                assertEquals(0L, sum % second);
                assertTrue(sum <= 50L * second);
                seen += sum > 0L ? 1 : 0;
            }
        } finally {
            going.set(false);
            writer.join();
        }
        assertTrue(seen > 0);
    }
}
