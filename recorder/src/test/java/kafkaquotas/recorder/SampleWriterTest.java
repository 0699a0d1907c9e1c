package kafkaquotas.recorder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SampleWriterTest {
    private static final long START = 1_763_860_000L;

    @TempDir
    Path folder;

    private final AtomicLong clock = new AtomicLong(START * 1000);
    private final DroppedSeconds dropped = new DroppedSeconds();
    private final Series app = new Series(0, Kind.PRODUCE, Map.of("user", "al%3Dice", "client-id", "a\"p\\p\u00e9\n"));
    private final Series reader = new Series(1, Kind.FETCH, Map.of("user", "", "client-id", "reader"));
    private final Map<String, Object> settings = new HashMap<>();
    private final Map<Integer, Series> many = new HashMap<>();

    private SampleWriter writer() {
        settings.putIfAbsent(RecorderConfig.FOLDER, folder.toString());
        settings.putIfAbsent(RecorderConfig.FREE_BYTES, "0");
        return new SampleWriter(() -> RecorderConfig.of(settings), 7, () -> "cluster", dropped, clock::get);
    }

    private Sample sample(long second, long amount) {
        Sample sample = new Sample(second);
        sample.add(app, amount, 0L);
        sample.add(reader, 0L, 250L);
        return sample;
    }

    private void write(SampleWriter writer, long from, int seconds) {
        for (long second = from; second < from + seconds; second++) {
            clock.set(second * 1000 + 2000);
            writer.add(sample(second, second - START + 1));
        }
    }

    private List<Path> files() throws IOException {
        try (Stream<Path> paths = Files.list(folder)) {
            return paths.sorted().collect(Collectors.toList());
        }
    }

    private static List<String> lines(Path file) throws IOException {
        try (InputStream in = new GZIPInputStream(Files.newInputStream(file))) {
            return List.of(new String(in.readAllBytes(), StandardCharsets.UTF_8).split("\n"));
        }
    }

    @Test
    void aFileNamesItsSeriesOnceAndIsAscii() throws IOException {
        SampleWriter writer = writer();
        write(writer, START, 2);
        writer.close();
        assertEquals(1, files().size());
        assertTrue(files().get(0).getFileName().toString().matches("quota-recorder-7-\\d{8}T\\d{9}Z\\.jsonl\\.gz"));
        assertEquals(List.of(
            "{\"format\":\"kafka-quotas-recorder\",\"version\":1,\"broker\":7,\"cluster\":\"cluster\",\"started_ms\":"
                + (START * 1000 + 2000) + "}",
            "[\"c\",0,\"produce\",\"al=ice\",\"a\\\"p\\\\p\\u00e9\\u000a\"]",
            "[\"c\",1,\"fetch\",null,\"reader\"]",
            "[\"s\"," + START + ",[0,1],[1,250]]",
            "[\"s\"," + (START + 1) + ",[0,2],[1,250]]"), lines(files().get(0)));
    }

    @Test
    void theFileIsOpenUntilItIsOldEnoughAndEachFileStandsAlone() throws IOException {
        settings.put(RecorderConfig.FLUSH_SECONDS, "1");
        settings.put(RecorderConfig.FILE_SECONDS, "5");
        SampleWriter writer = writer();
        write(writer, START, 3);
        assertTrue(files().get(0).toString().endsWith(".open"));
        assertFalse(lines(files().get(0)).isEmpty());
        write(writer, START + 3, 9);
        writer.close();
        assertTrue(files().size() >= 2);
        for (Path file : files()) {
            assertTrue(lines(file).get(0).startsWith("{\"format\""), file.toString());
            assertTrue(lines(file).get(1).startsWith("[\"c\",0,"), file.toString());
        }
        assertEquals(12L, writer.secondsWritten());
    }

    @Test
    void theOldestFilesMakeRoom() throws IOException {
        settings.put(RecorderConfig.FLUSH_SECONDS, "1");
        settings.put(RecorderConfig.FILE_SECONDS, "1");
        settings.put(RecorderConfig.TOTAL_BYTES, String.valueOf(1024 * 1024));
        Path other = Files.write(folder.resolve("quota-recorder-8-20200101T000000000Z.jsonl.gz"), new byte[2_000_000]);
        Path old = Files.write(folder.resolve("quota-recorder-7-20200101T000000000Z.jsonl.gz"), new byte[600_000]);
        Path newer = Files.write(folder.resolve("quota-recorder-7-20200102T000000000Z.jsonl.gz"), new byte[600_000]);
        SampleWriter writer = writer();
        write(writer, START, 3);
        writer.close();
        assertFalse(Files.exists(old));
        assertTrue(Files.exists(newer));
        assertTrue(Files.exists(other), "another broker's files are its own");
    }

    private void writeMany(SampleWriter writer, long second, int count, java.util.Random chance) {
        clock.set(second * 1000 + 2000);
        Sample sample = new Sample(second);
        for (int number = 0; number < count; number++) {
            Map<String, String> tags = Map.of("user", "user-" + number, "client-id", "app");
            sample.add(many.computeIfAbsent(number, id -> new Series(id, Kind.PRODUCE, tags)), chance.nextInt(1_000_000_000), 0L);
        }
        writer.add(sample);
    }

    @Test
    void filesEndByTheirSizeAndAllOfThemTakeNoMoreThanTheirTotal() throws IOException {
        int fileBytes = 64 * 1024;
        int totalBytes = 1024 * 1024;
        settings.put(RecorderConfig.FLUSH_SECONDS, "1");
        settings.put(RecorderConfig.FILE_BYTES, String.valueOf(fileBytes));
        settings.put(RecorderConfig.TOTAL_BYTES, String.valueOf(totalBytes));
        SampleWriter writer = writer();
        java.util.Random chance = new java.util.Random(1);
        long most = 0L;
        long largest = 0L;
        for (long second = START; second < START + 600; second++) {
            writeMany(writer, second, 1000, chance);
            long total = 0L;
            for (Path file : files()) {
                total += Files.size(file);
                largest = Math.max(largest, Files.size(file));
            }
            most = Math.max(most, total);
        }
        writer.close();
        assertTrue(writer.bytesWritten() > 3L * totalBytes, "the limit was reached three times over");
        assertTrue(most <= totalBytes, most + " bytes");
        assertTrue(most > totalBytes - 3L * fileBytes, most + " bytes");
        assertTrue(largest < 2L * fileBytes, largest + " bytes");
        assertEquals(0L, dropped.total());
        for (Path file : files()) {
            assertTrue(lines(file).get(0).startsWith("{\"format\""), file.toString());
        }
    }

    @Test
    void tooLittleFreeSpaceDropsAndCountsUntilThereIsMore() throws IOException {
        settings.put(RecorderConfig.FLUSH_SECONDS, "1");
        settings.put(RecorderConfig.FREE_BYTES, String.valueOf(Long.MAX_VALUE));
        SampleWriter writer = writer();
        write(writer, START, 10);
        assertEquals(0, files().size());
        settings.put(RecorderConfig.FREE_BYTES, "0");
        write(writer, START + 10, 10);
        writer.close();
        List<String> written = lines(files().get(0));
        long seconds = written.stream().filter(line -> line.startsWith("[\"s\"")).count();
        assertEquals(20L, seconds + dropped.total());
        assertTrue(dropped.total() >= 8L && dropped.total() <= 10L);
        assertTrue(written.contains("[\"d\"," + START + "," + (START + dropped.total() - 1) + ",\"cannot write: IOException\"]"));
    }

    @Test
    void aFolderThatCannotBeMadeDropsAndCounts() throws IOException {
        settings.put(RecorderConfig.FLUSH_SECONDS, "1");
        Path file = Files.createFile(folder.resolve("taken"));
        settings.put(RecorderConfig.FOLDER, file.resolve("below").toString());
        SampleWriter writer = writer();
        write(writer, START, 10);
        writer.close();
        assertEquals(10L, dropped.total());
        assertEquals(0L, writer.secondsWritten());
    }

    @Test
    void whatACrashLeftGetsItsNameAndANewFileFollows() throws IOException {
        Path left = folder.resolve("quota-recorder-7-20200101T000000000Z.jsonl.gz.open");
        Files.write(left, new byte[] {1, 2, 3}, StandardOpenOption.CREATE_NEW);
        Files.createFile(folder.resolve("quota-recorder-7-20200102T000000000Z.jsonl.gz.open"));
        SampleWriter writer = writer();
        write(writer, START, 1);
        writer.close();
        List<String> names = new ArrayList<>();
        for (Path file : files()) {
            names.add(file.getFileName().toString());
        }
        assertEquals(2, names.size());
        assertEquals("quota-recorder-7-20200101T000000000Z.jsonl.gz", names.get(0));
    }

    @Test
    void theEndOfAFileThatWasNotClosedIsNamedHoweverShortTheHoleIs() throws IOException {
        settings.put(RecorderConfig.FLUSH_SECONDS, "3");
        SampleWriter killed = writer();
        write(killed, START, 11);
        Path open = files().get(0);
        assertTrue(open.toString().endsWith(".open"));
        List<String> before = lines(open);
        long last = Long.parseLong(before.get(before.size() - 1).split(",")[1]);
        assertTrue(last < START + 10, "the last seconds are in memory alone");
        String name = open.getFileName().toString().replace(".open", "");

        for (int hole : new int[] {1, 24}) {
            Files.move(files().get(0), folder.resolve(name + ".open"));
            SampleWriter next = writer();
            long again = last + 1 + hole;
            write(next, again, 1);
            next.close();
            List<String> after = lines(files().get(1));
            String until = java.time.Instant.ofEpochSecond(again).toString();
            assertTrue(after.contains("[\"d\"," + (last + 1) + "," + (last + Math.min(hole, 5)) + ",\"" + name
                + " was not closed, and nothing is recorded until " + until + "\"]"), after.toString());
            assertEquals(before, lines(files().get(0)));
            Files.delete(files().get(1));
        }
        assertEquals(6L, dropped.total());
    }
}
