package kafkaquotas.recorder;

import java.io.BufferedReader;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
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
import java.util.concurrent.TimeUnit;
import java.util.zip.GZIPInputStream;
import java.util.zip.ZipException;

/** The files of one broker in a folder that other brokers may share. Names sort by time. */
final class RecordFolder {
    private static final DateTimeFormatter TIME =
        DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmssSSS'Z'", Locale.ROOT).withZone(ZoneOffset.UTC);

    /** How the line of a second begins: see {@link LineFormat}. */
    private static final String SECOND = "[\"s\",";

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

    /** A file that an earlier run of this broker did not close, and the last second in it. */
    static final class Leftover {
        final String name;
        final long lastSecond;

        Leftover(String name, long lastSecond) {
            this.name = name;
            this.lastSecond = lastSecond;
        }
    }

    /** Give the files of an earlier run of this broker, which ended without closing them, their final names. */
    List<Leftover> completeLeftovers() throws IOException {
        List<Leftover> leftovers = new ArrayList<>();
        for (Path path : files(RecordFile.OPEN)) {
            String name = path.getFileName().toString();
            Path target = path.resolveSibling(name.substring(0, name.length() - RecordFile.OPEN.length()));
            if (Files.size(path) == 0L) {
                Files.delete(path);
            } else {
                leftovers.add(new Leftover(target.getFileName().toString(), lastSecond(path)));
                Files.move(path, target, StandardCopyOption.ATOMIC_MOVE);
            }
        }
        return leftovers;
    }

    /** The last one that can be read, or that in which the file was changed. */
    private static long lastSecond(Path path) throws IOException {
        long last = -1L;
        try (BufferedReader lines = new BufferedReader(
            new InputStreamReader(new GZIPInputStream(Files.newInputStream(path)), StandardCharsets.US_ASCII))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith(SECOND)) {
                    last = Math.max(last, Long.parseLong(line.substring(SECOND.length(), line.indexOf(',', SECOND.length()))));
                }
            }
        } catch (EOFException | ZipException | RuntimeException cut) {
            // The broker ended while it wrote here.
        }
        return last < 0L ? Files.getLastModifiedTime(path).to(TimeUnit.SECONDS) : last;
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
