package kafkaquotas.recorder;

/** What the recorder says of itself over JMX, as {@code kafka-quotas:type=recorder}. */
public interface RecorderStatusMXBean {
    /** Series that are recorded now. */
    int getSeries();

    /** Seconds that are in files. */
    long getSecondsWritten();

    /** Seconds that could not be recorded or written. */
    long getSecondsDropped();

    /** Bytes of files, compressed. */
    long getBytesWritten();

    /** Processor time of the recorder's own threads. */
    long getThreadNanos();

    /** Quota metrics whose sensor was not found: their traffic is missing. */
    long getSensorsMissed();
}
