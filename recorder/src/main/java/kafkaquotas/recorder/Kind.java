package kafkaquotas.recorder;

/** What a quota sensor counts, and how its values become whole numbers. */
enum Kind {
    /** Bytes of requests. */
    PRODUCE("produce", "Produce", "byte-rate", 1.0),
    /** Bytes of answers. */
    FETCH("fetch", "Fetch", "byte-rate", 1.0),
    /** Nanoseconds of a thread: Kafka records percent times seconds, so one nanosecond is 1e-7. */
    REQUEST("request", "Request", "request-time", 1e7),
    /** Partitions. */
    MUTATION("mutation", "ControllerMutation", "mutation-rate", 1.0);

    /** The metric of the sensor that records throttle times, the same for all kinds. */
    static final String THROTTLE_METRIC = "throttle-time";

    private final String word;
    private final String group;
    private final String metric;
    private final double unitsPerValue;

    Kind(String word, String group, String metric, double unitsPerValue) {
        this.word = word;
        this.group = group;
        this.metric = metric;
        this.unitsPerValue = unitsPerValue;
    }

    /** The kind's word in files and settings. */
    String word() {
        return word;
    }

    /** The prefix of Kafka's sensor names, and the group of its metrics. */
    String group() {
        return group;
    }

    /** The metric that the broker compares with the quota. */
    String metric() {
        return metric;
    }

    /** How many units of a file are 1.0 of the sensor. */
    double unitsPerValue() {
        return unitsPerValue;
    }

    /** The kind of a metrics group, or null. */
    static Kind ofGroup(String group) {
        for (Kind kind : values()) {
            if (kind.group.equals(group)) {
                return kind;
            }
        }
        return null;
    }
}
