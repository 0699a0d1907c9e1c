package kafkaquotas.recorder;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigException;

/** The recorder's settings among those of the broker. */
final class RecorderConfig {
    static final String FOLDER = "quota.recorder.folder";
    static final String FILE_BYTES = "quota.recorder.file.bytes";
    static final String FILE_SECONDS = "quota.recorder.file.seconds";
    static final String TOTAL_BYTES = "quota.recorder.total.bytes";
    static final String FREE_BYTES = "quota.recorder.free.bytes";
    static final String FLUSH_SECONDS = "quota.recorder.flush.seconds";
    static final String KINDS = "quota.recorder.kinds";

    private static final long MIB = 1024L * 1024L;

    static final ConfigDef DEFINITION = new ConfigDef()
        .define(FOLDER, Type.STRING, ConfigDef.NO_DEFAULT_VALUE, new ConfigDef.NonEmptyString(), Importance.HIGH,
            "The folder of the recorded files. The recorder creates it.")
        .define(FILE_BYTES, Type.LONG, 64 * MIB, ConfigDef.Range.between(64 * 1024L, 1024 * MIB), Importance.MEDIUM,
            "The size from which a file is complete.")
        .define(FILE_SECONDS, Type.LONG, 3600L, ConfigDef.Range.between(1L, 86_400L), Importance.MEDIUM,
            "The age from which a file is complete.")
        .define(TOTAL_BYTES, Type.LONG, 1024 * MIB, ConfigDef.Range.atLeast(MIB), Importance.HIGH,
            "The most that this broker's files take. The oldest are deleted first.")
        .define(FREE_BYTES, Type.LONG, 1024 * MIB, ConfigDef.Range.atLeast(0L), Importance.HIGH,
            "The disk space to leave free. The recorder writes nothing while there is less.")
        .define(FLUSH_SECONDS, Type.LONG, 10L, ConfigDef.Range.between(1L, 600L), Importance.LOW,
            "How long seconds stay in memory before they are written.")
        .define(KINDS, Type.LIST, "produce,fetch,request,mutation",
            ConfigDef.ValidList.in("produce", "fetch", "request", "mutation"), Importance.LOW,
            "What to record.");

    private final AbstractConfig values;

    private RecorderConfig(AbstractConfig values) {
        this.values = values;
    }

    /** Raises {@link ConfigException} for a setting that is missing or out of range. */
    static RecorderConfig of(Map<String, ?> brokerSettings) {
        RecorderConfig config = new RecorderConfig(new AbstractConfig(DEFINITION, own(brokerSettings), false));
        try {
            config.folder();
        } catch (InvalidPathException error) {
            throw new ConfigException(FOLDER, config.values.getString(FOLDER), "This is not a path: " + error.getReason());
        }
        return config;
    }

    /** The settings that a running broker may change: all but the folder. */
    static Set<String> reconfigurable() {
        Set<String> names = new TreeSet<>(DEFINITION.names());
        names.remove(FOLDER);
        return Collections.unmodifiableSet(names);
    }

    private static Map<String, Object> own(Map<String, ?> brokerSettings) {
        Map<String, Object> own = new HashMap<>();
        for (String name : DEFINITION.names()) {
            if (brokerSettings.get(name) != null) {
                own.put(name, brokerSettings.get(name));
            }
        }
        return own;
    }

    Path folder() {
        return Paths.get(values.getString(FOLDER));
    }

    long fileBytes() {
        return values.getLong(FILE_BYTES);
    }

    long fileMillis() {
        return values.getLong(FILE_SECONDS) * 1000L;
    }

    long totalBytes() {
        return values.getLong(TOTAL_BYTES);
    }

    long freeBytes() {
        return values.getLong(FREE_BYTES);
    }

    long flushMillis() {
        return values.getLong(FLUSH_SECONDS) * 1000L;
    }

    Set<Kind> kinds() {
        List<String> names = values.getList(KINDS);
        Set<Kind> kinds = EnumSet.noneOf(Kind.class);
        for (Kind kind : Kind.values()) {
            if (names.contains(kind.word())) {
                kinds.add(kind);
            }
        }
        return kinds;
    }
}
