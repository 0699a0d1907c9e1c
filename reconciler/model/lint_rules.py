"""The lint rules over whole states: ids, severities, reasons. The ids are words of the Repository document (``spec.lint``).

Sources: Kafka's ``ClientQuotaManager``, ``ClientQuotaControlManager`` and ``QuotaUtils``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.model.finding import Rule, Severity


def _rule(rule_id: str, severity: Severity, explanation: str) -> tuple[str, Rule]:
    return rule_id, Rule(id=rule_id, severity=severity, explanation=explanation, adjustable=True)


_ERROR: Final = Severity.ERROR
_WARNING: Final = Severity.WARNING
_INFO: Final = Severity.INFO

LINT_RULES: Final[Mapping[str, Rule]] = dict(
    (
        _rule(
            "default-hides-client-ids",
            _WARNING,
            "Every level with a user in it is stronger than every level without one. A quota of the default user applies to all "
            "users, ANONYMOUS too. From then on, no quota of a client-id alone wins for that key. One finding counts all quotas "
            "that a default overrides. Write the client's limits as quotas of the default user with that client-id, or give "
            "limits to users.",
        ),
        _rule(
            "client-id-never-wins",
            _WARNING,
            "This quota of a client-id cannot win: the cluster has a quota of the default user for the same key, and any user "
            "level is stronger than any client-id level. It would be written, and would limit no client. Match {user: {default: "
            "true}, client-id: NAME}, which is stronger than the default user.",
        ),
        _rule(
            "default-client-multiplies",
            _INFO,
            "A quota of a user with the default client-id gives each client id of that user the full rate, in a bucket of its "
            "own: ten clients may take ten times the value, and client libraries that make up ids take as many as they like. To "
            "cap a user as a whole, leave the client-id out.",
        ),
        _rule(
            "user-cap-bypassed",
            _WARNING,
            "A user has a quota, and a stronger one with the default client-id for the same key. All clients that send a client "
            "id then take the full rate each, and the user's own quota caps only those that send none. There is no quota that "
            "applies on top of another: exactly one wins.",
        ),
        _rule(
            "default-captures-protected",
            _WARNING,
            "A default quota reaches every client without a quota of its own, and here that is a client that the cluster "
            "protects. Give the protected principal an explicit quota for the same key (a large one exempts it), and apply that "
            "before the default.",
        ),
        _rule(
            "first-default",
            _WARNING,
            "The cluster has no default of this kind yet. The first one captures, at once, every client without a quota of its "
            "own: administrators' tools, MirrorMaker, Connect, monitoring, operators, and ANONYMOUS, who is every client of an "
            "unauthenticated listener together. A default ip also counts brokers, health checks and load balancers. Look at who "
            "connects, and exempt them by name first.",
        ),
        _rule(
            "empty-client-id-escapes",
            _INFO,
            "A client that sends an empty client id is looked up at the levels of users only. Without a quota of the user or "
            "the default user it is unlimited, so a default client-id quota can be escaped by sending no id.",
        ),
        _rule(
            "ip-two-spellings",
            _ERROR,
            "To Kafka two spellings of one address are two entities, but in each broker they share one slot: the one that is "
            "applied last decides, and removing either removes the limit. Keep one, in the canonical spelling. "
            "It is a warning only where the other one is on the cluster and not declared.",
        ),
        _rule(
            "capacity-overcommitted",
            _INFO,
            "The limits of one key add up to more than spec.capacity of one broker. That is usual: few clients reach their "
            "limits at once. The factor shows how much is promised more than once. A backtest shows whether recorded traffic "
            "came near. To refuse a factor above 1, raise the rule to error in spec.lint of the Repository manifest.",
        ),
        _rule(
            "percentage-no-limit",
            _WARNING,
            "request_percentage is percent of one thread. A broker with Kafka's default 8 io and 3 network threads has 1100 to "
            "give. A value above that never limits a client. Check num.io.threads and num.network.threads of the brokers: with "
            "more threads the value may mean something. To exempt a client on purpose, write 1000000.",
        ),
        _rule(
            "percentage-small",
            _WARNING,
            "request_percentage counts every request, so a small value also delays heartbeats, metadata and the handshake of API "
            "versions: members then drop out of their groups, and groups rebalance. Below 10 (a tenth of one thread) that is "
            "likely. It is percent of one thread, not a number of requests and not a share of the machine.",
        ),
        _rule(
            "byte-rate-small",
            _WARNING,
            "A bare number below 65536 bytes per second is most often meant in another unit, or copied from an example. One "
            "ordinary batch of a producer is 16 KiB. Write the unit (20MiB, or 512B if bytes are meant).",
        ),
        _rule(
            "byte-rate-overflow",
            _WARNING,
            "Kafka keeps a throttle time in 32 bits of milliseconds. At a byte rate this small one request of 100 MiB, the most "
            "that a broker accepts by default (socket.request.max.bytes), asks for a longer throttle. The number then overflows, "
            "and a negative throttle delays no client: the smallest limits are none. Write 1KiB or more. To block a client, "
            "remove its ACLs.",
        ),
        _rule(
            "same-as-fallback",
            _INFO,
            "Without this quota the same clients would have the same limit, in the same buckets, from the next level. It changes "
            "nothing now, but stays as it is when the default is moved. Remove it, or leave it if that is the intention.",
        ),
        _rule(
            "streams-thread-client-id",
            _INFO,
            "Kafka Streams makes a client id for each thread, so a quota for one of them limits one thread of one instance. The "
            "names change with the number of threads. Limit the application's user instead.",
        ),
        _rule(
            "reduction-throttles",
            _WARNING,
            "A lower byte rate counts at once against what was sent within the last 11 seconds. A client that runs at the old "
            "rate is throttled for up to (old / new - 1) x 11 s in one go. That may exceed its timeouts. Lower the limit in "
            "steps: apply --step-down 2 does. A client is assumed to run at its current limit.",
        ),
        _rule(
            "live-value-changes-meaning",
            _WARNING,
            "The cluster has a value that brokers refuse today and that versions read differently. Zero throttles neither "
            "produce nor fetch, delays requests by at most a second each, and bans the connections of an address. Kafka 3.5 and "
            "newer refuse to set it again, so it can only be replaced or removed. NaN never throttles. Decide which limit is "
            "meant, and declare it.",
        ),
        _rule(
            "strimzi-owns-user",
            _WARNING,
            "Strimzi's User Operator collects all KafkaUsers and all users that have a quota. It removes the quotas of a user "
            "without a KafkaUser, or with one that has no quotas, and overwrites the others. A declared quota of a user alone "
            "does not stay. Users that STRIMZI_IGNORED_USERS_PATTERN covers stay, as long as they have no KafkaUser.",
        ),
        _rule(
            "strimzi-owns-default",
            _WARNING,
            "Strimzi's Cluster Operator sets the quotas of the default user from spec.kafka.quotas of the Kafka, and removes "
            "them where that is missing. A declared quota of the default user does not stay.",
        ),
        _rule(
            "migrated-name",
            _WARNING,
            "The cluster has a quota for a name that is <default> literally, or percent-encoded as the nodes of ZooKeeper are. "
            "Kafka before 3.6.2 and 3.7.1 migrated clusters from ZooKeeper to KRaft with the nodes' names as they were. "
            "Quotas of defaults, and of names such as alice@EXAMPLE.COM, became quotas of no client. Those clients have been "
            "without a limit since. Declare the entity that is meant, and remove this one (prune does). If a client is really "
            "called so, declare it as it is.",
        ),
        _rule(
            "unreadable-node",
            _WARNING,
            "ZooKeeper has nodes among the quotas that brokers cannot read. A node is not JSON, or one of its values is "
            "not a string. Or a byte rate is not a whole number, or Kafka would write the name otherwise. A running "
            "broker logs it and keeps the quota that it had. A starting one may fail, and so may DescribeClientQuotas for every "
            "caller. This tool shows it, leaves it as it is, and sets only what makes it readable again. Look at the node with "
            "zookeeper-shell, correct or delete it, and then create a notification in /config/changes, or restart the brokers.",
        ),
        _rule(
            "expires-soon",
            _WARNING,
            "A value with until expires within a week. From that moment on, plan, apply and run use the value of then. Without "
            "one, the clients get the limit of the next precedence level. Ask the team whether it still needs the value. To keep "
            "it, move the date.",
        ),
        _rule(
            "expired-value",
            _INFO,
            "A value with until has expired, so the manifest states more than what applies. Write the value of then in its "
            "place, or remove the key where there is none.",
        ),
    )
)
"""The rules by id, in the order in which ``explain`` lists them."""
