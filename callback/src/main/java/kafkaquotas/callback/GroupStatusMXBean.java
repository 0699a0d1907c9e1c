package kafkaquotas.callback;

/** One group over JMX, as {@code kafka-quotas:type=callback-group}. Limits are of this broker; -1 is unlimited. */
public interface GroupStatusMXBean {
    /** Members and prefixes. */
    int getMembers();

    /** Decisions that put a request into this group. */
    long getDecisions();

    /** Bytes a second. */
    double getProduceLimit();

    /** Bytes a second. */
    double getFetchLimit();

    /** Percent of a thread. */
    double getRequestLimit();

    /** Partitions a second. */
    double getControllerMutationLimit();
}
