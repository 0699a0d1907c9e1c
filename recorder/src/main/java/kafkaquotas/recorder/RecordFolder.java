package kafkaquotas.recorder;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/** The files of one broker in a folder that other brokers may share. Names sort by time. */
final class RecordFolder {
    private static final DateTimeFormatter TIME =
        DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmssSSS'Z'", Locale.ROOT).withZone(ZoneOffset.UTC);

    private final Path folder;
    private final int broker;

    RecordFolder(Path folder, int broker) {
        this.folder = folder;
        this.broker = broker;
    }

    RecordFile create(long nowMs) throws IOException {
        String name = prefix() + TIME.format(Instant.ofEpochMilli(nowMs)) + RecordFile.SUFFIX;
        return RecordFile.create(folder, name, nowMs);
    }

    /** Give the files of an earlier run of this broker, which ended without closing them, their final names. */
    void completeLeftovers() throws IOException {
        for (Path path : files(RecordFile.OPEN)) {
            String name = path.getFileName().toString();
            Path target = path.resolveSibling(name.substring(0, name.length() - RecordFile.OPEN.length()));
            if (Files.size(path) == 0L) {
                Files.delete(path);
            } else {
                Files.move(path, target, StandardCopyOption.ATOMIC_MOVE);
            }
        }
    }

    /** Delete the oldest complete files until all together, and {@code more} bytes, are at most {@code most}. How many. */
    int deleteOldest(long most, long more) throws IOException {
        List<Path> complete = files(RecordFile.SUFFIX);
        long total = more;
        for (Path path : complete) {
            total += size(path);
        }
        int deleted = 0;
        for (Path path : complete) {
            if (total <= most) {
                break;
            }
            total -= size(path);
            Files.deleteIfExists(path);
            deleted++;
        }
        return deleted;
    }

    long freeBytes() throws IOException {
        Files.createDirectories(folder);
        return Files.getFileStore(folder).getUsableSpace();
    }

    private String prefix() {
        return RecordFile.PREFIX + broker + "-";
    }

    private List<Path> files(String ending) throws IOException {
        List<Path> found = new ArrayList<>();
        if (Files.isDirectory(folder)) {
            try (DirectoryStream<Path> paths = Files.newDirectoryStream(folder, prefix() + "*" + ending)) {
                paths.forEach(found::add);
            }
        }
        found.sort(Comparator.comparing(path -> path.getFileName().toString()));
        return found;
    }

    private static long size(Path path) throws IOException {
        try {
            return Files.size(path);
        } catch (NoSuchFileException gone) {
            return 0L;
        }
    }
}
