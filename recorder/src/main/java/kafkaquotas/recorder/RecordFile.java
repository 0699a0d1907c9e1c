package kafkaquotas.recorder;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.zip.GZIPOutputStream;

/**
 * A file that is being written: gzip members, each appended as a whole. What a crash or a full disk cuts short is the last one.
 *
 * <p>It is called {@code NAME.open} until it is complete.
 */
final class RecordFile {
    static final String PREFIX = "quota-recorder-";
    static final String SUFFIX = ".jsonl.gz";
    static final String OPEN = ".open";

    private final Path path;
    private final long startedMs;
    private final FileChannel channel;
    private long bytes;

    private RecordFile(Path path, long startedMs, FileChannel channel) {
        this.path = path;
        this.startedMs = startedMs;
        this.channel = channel;
    }

    static RecordFile create(Path folder, String name, long startedMs) throws IOException {
        Files.createDirectories(folder);
        Path path = folder.resolve(name + OPEN);
        return new RecordFile(path, startedMs,
            FileChannel.open(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE));
    }

    long bytes() {
        return bytes;
    }

    long startedMs() {
        return startedMs;
    }

    /** Append lines as one member; when that fails the file ends where it ended before. */
    int append(CharSequence lines) throws IOException {
        ByteBuffer member = ByteBuffer.wrap(compressed(lines));
        int size = member.remaining();
        try {
            while (member.hasRemaining()) {
                channel.write(member, bytes + size - member.remaining());
            }
        } catch (IOException error) {
            try {
                channel.truncate(bytes);
            } catch (IOException second) {
                error.addSuppressed(second);
            }
            throw error;
        }
        bytes += size;
        return size;
    }

    /** Close it and give it its final name; an empty one is deleted. */
    void complete() throws IOException {
        channel.close();
        if (bytes == 0L) {
            Files.deleteIfExists(path);
            return;
        }
        String name = path.getFileName().toString();
        Path target = path.resolveSibling(name.substring(0, name.length() - OPEN.length()));
        Files.move(path, target, StandardCopyOption.ATOMIC_MOVE);
    }

    private static byte[] compressed(CharSequence lines) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream(Math.max(256, lines.length() / 2));
        try (GZIPOutputStream gzip = new GZIPOutputStream(out, 8192)) {
            gzip.write(lines.toString().getBytes(StandardCharsets.US_ASCII));
        }
        return out.toByteArray();
    }
}
