package kafkaquotas.recorder;

/**
 * The lines of a file, each a JSON value, ASCII only.
 *
 * <pre>
 * {"format":"kafka-quotas-recorder","version":1,"broker":1,"cluster":"...","started_ms":...}   the first line
 * ["c",7,"produce","alice","app"]        series 7: kind, user, client-id; null is not known
 * ["s",1763860000,[7,1024],[7,250]]      a second since 1970: series and amount in turn; series and milliseconds of throttles
 * ["d",1763860001,1763860009,"disk"]     seconds that were dropped, both ends included, and why
 * </pre>
 *
 * <p>Of one second there may be several lines: their amounts add up. An amount can be negative, where Kafka takes a charge back.
 */
final class LineFormat {
    static final String FORMAT = "kafka-quotas-recorder";
    static final int VERSION = 1;

    private LineFormat() {
    }

    static void header(StringBuilder out, int broker, String cluster, long startedMs) {
        out.append("{\"format\":\"").append(FORMAT).append("\",\"version\":").append(VERSION);
        out.append(",\"broker\":").append(broker).append(",\"cluster\":");
        text(out, cluster);
        out.append(",\"started_ms\":").append(startedMs).append("}\n");
    }

    static void series(StringBuilder out, Series series) {
        out.append("[\"c\",").append(series.id()).append(',');
        text(out, series.kind().word());
        out.append(',');
        text(out, series.user());
        out.append(',');
        text(out, series.clientId());
        out.append("]\n");
    }

    static void sample(StringBuilder out, Sample sample) {
        out.append("[\"s\",").append(sample.second()).append(",[");
        boolean throttled = false;
        int before = out.length();
        for (int index = 0; index < sample.size(); index++) {
            throttled |= sample.throttleMs(index) != 0L;
            if (sample.amount(index) != 0L) {
                pair(out, before, sample.series(index).id(), sample.amount(index));
            }
        }
        out.append(']');
        if (throttled) {
            out.append(",[");
            before = out.length();
            for (int index = 0; index < sample.size(); index++) {
                if (sample.throttleMs(index) != 0L) {
                    pair(out, before, sample.series(index).id(), sample.throttleMs(index));
                }
            }
            out.append(']');
        }
        out.append("]\n");
    }

    static void dropped(StringBuilder out, DroppedSeconds.Range range) {
        out.append("[\"d\",").append(range.first).append(',').append(range.last).append(',');
        text(out, range.reason);
        out.append("]\n");
    }

    private static void pair(StringBuilder out, int begin, int id, long value) {
        if (out.length() > begin) {
            out.append(',');
        }
        out.append(id).append(',').append(value);
    }

    private static void text(StringBuilder out, String text) {
        if (text == null) {
            out.append("null");
            return;
        }
        out.append('"');
        for (int index = 0; index < text.length(); index++) {
            char letter = text.charAt(index);
            if (letter == '"' || letter == '\\') {
                out.append('\\').append(letter);
            } else if (letter >= ' ' && letter <= '~') {
                out.append(letter);
            } else {
                out.append(String.format("\\u%04x", (int) letter));
            }
        }
        out.append('"');
    }
}
