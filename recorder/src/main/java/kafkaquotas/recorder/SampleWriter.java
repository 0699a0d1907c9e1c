package kafkaquotas.recorder;

import java.io.IOException;
import java.time.Instant;
import java.util.BitSet;
import java.util.List;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Writes samples to files, and drops what cannot be written. Only the writing thread calls it, but for the figures. */
final class SampleWriter {
    private static final Logger LOG = LoggerFactory.getLogger(SampleWriter.class);
    /** A second is given to the writer one to two seconds after its end. */
    private static final long SECONDS_UNTIL_FINAL = 2L;
    private static final int MOST_BUFFERED = 4 * 1024 * 1024;

    private final Supplier<RecorderConfig> config;
    private final int broker;
    private final Supplier<String> cluster;
    private final DroppedSeconds dropped;
    private final LongSupplier clockMs;
    private final RecordFolder folder;
    private final StringBuilder lines = new StringBuilder();
    private final BitSet named = new BitSet();
    private RecordFile file;
    private boolean begun;
    private boolean swept;
    private boolean failing;
    private long buffered;
    private long firstBuffered;
    private long lastBuffered;
    private long bufferedSinceMs;
    private volatile long bytesWritten;
    private volatile long secondsWritten;

    SampleWriter(
        Supplier<RecorderConfig> config, int broker, Supplier<String> cluster, DroppedSeconds dropped, LongSupplier clockMs) {
        this.config = config;
        this.broker = broker;
        this.cluster = cluster;
        this.dropped = dropped;
        this.clockMs = clockMs;
        this.folder = new RecordFolder(config.get().folder(), broker);
    }

    long bytesWritten() {
        return bytesWritten;
    }

    long secondsWritten() {
        return secondsWritten;
    }

    /** Take one sample, or null when there is none, and write when it is time. */
    void add(Sample sample) {
        long now = clockMs.getAsLong();
        if (sample != null) {
            buffer(sample, now);
        }
        if (buffered > 0 && (now - bufferedSinceMs >= config.get().flushMillis() || lines.length() >= MOST_BUFFERED)) {
            flush();
        }
        if (file != null && (file.bytes() >= config.get().fileBytes() || now - file.startedMs() >= config.get().fileMillis())) {
            flush();
            complete();
        }
    }

    /** Write everything and complete the file. */
    void close() {
        flush();
        complete();
    }

    private void buffer(Sample sample, long now) {
        if (!begun) {
            LineFormat.header(lines, broker, cluster.get(), now);
            begun = true;
        }
        if (buffered == 0) {
            bufferedSinceMs = now;
            firstBuffered = sample.second();
            lastBuffered = sample.second();
        }
        for (int index = 0; index < sample.size(); index++) {
            Series series = sample.series(index);
            if (!named.get(series.id())) {
                named.set(series.id());
                LineFormat.series(lines, series);
            }
        }
        LineFormat.sample(lines, sample);
        buffered++;
        firstBuffered = Math.min(firstBuffered, sample.second());
        lastBuffered = Math.max(lastBuffered, sample.second());
    }

    private void flush() {
        if (buffered == 0) {
            return;
        }
        List<DroppedSeconds.Range> ranges = List.of();
        try {
            if (!swept) {
                for (RecordFolder.Leftover leftover : folder.completeLeftovers()) {
                    lose(leftover);
                }
                swept = true;
            }
            ranges = dropped.take();
            int deleted = folder.deleteOldest(config.get().totalBytes(), (file == null ? 0L : file.bytes()) + lines.length() / 4);
            if (deleted > 0) {
                LOG.info("Deleted the {} oldest files of the quota recorder: {} is reached", deleted, RecorderConfig.TOTAL_BYTES);
            }
            long free = folder.freeBytes();
            if (free < config.get().freeBytes()) {
                throw new IOException("only " + free + " bytes are free, and " + RecorderConfig.FREE_BYTES + " is "
                    + config.get().freeBytes());
            }
            for (DroppedSeconds.Range range : ranges) {
                LineFormat.dropped(lines, range);
            }
            if (file == null) {
                file = folder.create(clockMs.getAsLong());
            }
            bytesWritten += file.append(lines);
            secondsWritten += buffered;
            if (failing) {
                LOG.info("The quota recorder writes again. It has dropped {} seconds in all", dropped.total());
                failing = false;
            }
            lines.setLength(0);
            buffered = 0;
        } catch (IOException | RuntimeException error) {
            dropped.putBack(ranges);
            drop(error);
        }
    }

    /** The end of a file that was not closed: seconds that were still in memory when the broker ended. Later ones it did not run. */
    private void lose(RecordFolder.Leftover leftover) {
        long first = leftover.lastSecond + 1;
        long inMemory = config.get().flushMillis() / 1000L + SECONDS_UNTIL_FINAL;
        String until = Instant.ofEpochSecond(firstBuffered).toString();
        LOG.warn("{} was not closed: the broker ended without warning. Nothing is recorded from {} to {}", leftover.name,
            Instant.ofEpochSecond(first), until);
        if (first < firstBuffered) {
            String reason = leftover.name + " was not closed, and nothing is recorded until " + until;
            dropped.add(first, Math.min(firstBuffered - 1, first + inMemory - 1), reason);
        }
    }

    private void drop(Exception error) {
        dropped.add(firstBuffered, lastBuffered, "cannot write: " + error.getClass().getSimpleName());
        if (!failing) {
            LOG.warn("The quota recorder cannot write and drops what it records: {}. It tries again", error.toString());
            failing = true;
        }
        lines.setLength(0);
        buffered = 0;
        // Names that were lost with the lines are written anew, in the next file.
        complete();
    }

    private void complete() {
        named.clear();
        begun = false;
        if (file == null) {
            return;
        }
        try {
            file.complete();
        } catch (IOException error) {
            LOG.warn("The quota recorder cannot complete a file: {}", error.toString());
        }
        file = null;
    }
}
