package kafkaquotas.callback;

/** What the callback reports over JMX, as {@code kafka-quotas:type=callback}. */
public interface CallbackStatusMXBean {
    /** Groups that have a limit or a member. */
    int getGroups();

    /** Members and prefixes of all groups. */
    int getMembers();

    /** Members that are in more than one group: the group whose name sorts first decides. */
    int getMembersInSeveralGroups();

    /** Quotas that the leaders of this broker divide. */
    int getProportionalQuotas();

    /** Quotas of reserved users whose names follow no rule. They have no effect. */
    int getIgnoredQuotas();

    /** Decisions for members of a group. */
    long getGroupDecisions();

    /** Decisions by Kafka's own eight levels. */
    long getLevelDecisions();

    /** Decisions that failed and were made by Kafka's own levels instead. */
    long getFailures();

    /** Whether this broker knows the leaders. Without them, proportional quotas are the number that is stored. */
    boolean isLeadersKnown();

    /** Partitions that this broker leads, without Kafka's own topics. */
    int getPartitionsLed();

    /** Partitions of all topics but Kafka's own. */
    int getPartitions();

    /** How often Kafka, or the callback's own query, gave it the cluster's metadata. */
    long getMetadataUpdates();
}
