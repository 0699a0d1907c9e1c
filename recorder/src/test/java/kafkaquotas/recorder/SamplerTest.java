package kafkaquotas.recorder;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class SamplerTest {
    private static final long START = 1_763_860_000L;

    private final AtomicLong clock = new AtomicLong(START * 1000);
    private final BlockingQueue<Sample> samples = new ArrayBlockingQueue<>(100);
    private final DroppedSeconds dropped = new DroppedSeconds();
    private final Sampler sampler = new Sampler(clock::get, samples, dropped);
    private final Series series = new Series(0, Kind.PRODUCE, Map.of("user", "alice", "client-id", "app"));

    private void takeAt(long second) {
        clock.set(second * 1000);
        sampler.takeDue();
    }

    private Map<Long, Long> sums() {
        Map<Long, Long> sums = new HashMap<>();
        for (Sample sample = samples.poll(); sample != null; sample = samples.poll()) {
            sums.merge(sample.second(), 0L, Long::sum);
            for (int index = 0; index < sample.size(); index++) {
                sums.merge(sample.second(), sample.amount(index), Long::sum);
            }
        }
        return sums;
    }

    @Test
    void eachSecondIsTakenOnceAlsoASilentOne() {
        sampler.add(series);
        series.amounts().record(null, 10.0, START * 1000);
        series.amounts().record(null, 30.0, (START + 2) * 1000);
        for (long second = START; second <= START + 4; second++) {
            takeAt(second);
        }
        assertEquals(Map.of(START, 10L, START + 1, 0L, START + 2, 30L), sums());
    }

    @Test
    void aChargeAfterItsSecondWasTakenIsAdded() {
        sampler.add(series);
        series.amounts().record(null, 10.0, START * 1000);
        takeAt(START + 2);
        series.amounts().record(null, 5.0, START * 1000);
        takeAt(START + 3);
        takeAt(START + 4);
        assertEquals(Map.of(START, 15L, START + 1, 0L, START + 2, 0L), sums());
    }

    @Test
    void aThreadWithoutProcessorTimeDropsSecondsAndSaysSo() {
        sampler.add(series);
        takeAt(START + 2);
        takeAt(START + 60);
        List<DroppedSeconds.Range> ranges = dropped.take();
        assertEquals(1, ranges.size());
        assertEquals(START + 1, ranges.get(0).first);
        assertEquals(START + 54, ranges.get(0).last);
        assertEquals(54L, dropped.total());
        assertEquals(5, sums().size());
    }

    @Test
    void aFullQueueDropsTheSampleAndDoesNotWait() {
        BlockingQueue<Sample> small = new ArrayBlockingQueue<>(1);
        Sampler quick = new Sampler(clock::get, small, dropped);
        for (long second = START; second <= START + 4; second++) {
            clock.set(second * 1000);
            quick.takeDue();
        }
        assertEquals(1, small.size());
        assertEquals(2L, dropped.total());
    }

    @Test
    void aClockThatIsSetBackGoesOnFromThere() {
        sampler.add(series);
        takeAt(START + 2);
        sums();
        series.amounts().record(null, 7.0, (START - 3600) * 1000);
        takeAt(START - 3600 + 2);
        assertEquals(Map.of(START - 3600, 7L), sums());
        assertEquals(0L, dropped.total());
    }

    @Test
    void theRestIsTakenAtTheEnd() {
        sampler.add(series);
        series.amounts().record(null, 1.0, START * 1000);
        takeAt(START + 2);
        series.amounts().record(null, 2.0, (START + 2) * 1000 + 500);
        clock.set((START + 2) * 1000 + 600);
        sampler.takeRest();
        assertEquals(Map.of(START, 1L, START + 1, 0L, START + 2, 2L), sums());
        series.amounts().record(null, 4.0, (START + 2) * 1000 + 700);
        assertEquals(2L, series.amounts().sumOf(START + 2));
    }

    @Test
    void aSeriesWhoseSensorIsGoneIsForgottenAfterItsLastSeconds() {
        sampler.add(series);
        takeAt(START + 2);
        assertEquals(1, sampler.series());
        series.remove(clock.get());
        takeAt(START + 3);
        assertEquals(1, sampler.series());
        takeAt(START + 12);
        assertEquals(0, sampler.series());
    }
}
