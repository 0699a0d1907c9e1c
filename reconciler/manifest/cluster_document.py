"""Cluster manifests into ``ClusterSpec``: connection, scope, broker settings, backtest policy.

Fields that the schema refused keep their built-in value; their findings are reported where the schema is checked.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from reconciler.formats import (
    ChoiceShape,
    FlagShape,
    LabelsShape,
    ListShape,
    ManifestShape,
    NumberShape,
    RecordShape,
    TableShape,
    TextShape,
)
from reconciler.manifest.documents import ClusterDocument
from reconciler.manifest.fields import SELECTOR, TEXT
from reconciler.manifest.profiles import ABOUT_PROFILES, PROFILE, PROFILE_EXAMPLES, profile
from reconciler.manifest.reading import Collector
from reconciler.manifest.safety_fields import ACCEPT, FREEZE, GUARDS, REASON
from reconciler.model import (
    DEFAULT_DAYS,
    BacktestPolicy,
    CallbackClass,
    ClusterSpec,
    Connection,
    DeclaredBrokers,
    FailRule,
    HistoryNeeds,
    LabelMatcher,
    MetricServer,
    Prune,
    QuotaKey,
    RebalancePolicy,
    SafetyRules,
    Scope,
    TrafficPlace,
    Verdict,
)
from reconciler.resolution import CONTROLLER_WINDOW_NUM, CONTROLLER_WINDOW_SECONDS, WINDOW_NUM, WINDOW_SECONDS
from reconciler.yaml import YamlMapping, YamlScalar, YamlSequence


def _connection(node: YamlMapping, out: Collector, **values: Any) -> Connection:
    connection = Connection(**values)
    if connection.bootstrap_servers and connection.zookeeper:
        out.add("conflicting-connection", "give bootstrapServers or zookeeper, not both", node)
    return connection


_CONNECTION: Final = RecordShape(
    _connection,
    "bootstrapServers, or zookeeper. Secrets only ever in the properties file.",
    {
        "bootstrapServers": ListShape(TEXT, "host:port of some brokers.", min_items=1),
        "properties": TextShape("Path of a Java client.properties file with the security settings."),
        "zookeeper": TextShape("host:port,host:port/chroot for clusters that keep quotas in ZooKeeper."),
    },
)


_BACKTEST: Final = RecordShape(
    BacktestPolicy,
    "What a backtest must not find, and how much history its verdicts need.",
    {
        "history": RecordShape(
            HistoryNeeds,
            "Below one of these, a quota group that would be clear is inconclusive.",
            {
                "hours": NumberShape("From the first to the last recorded request (default 24).", minimum=0),
                "coveragePercent": NumberShape(
                    "Percent of the minutes of the history that are in no hole of the broker's recording (default 95).",
                    minimum=0,
                    maximum=100,
                ),
            },
            min_properties=1,
        ),
        "fail": ListShape(
            RecordShape(
                FailRule,
                "One rule: every field that is given is a condition.",
                {
                    "verdicts": ListShape(
                        ChoiceShape({each.value: each for each in (Verdict.THROTTLED, Verdict.POSSIBLE, Verdict.INCONCLUSIVE)}),
                        "Which verdicts fail.",
                        min_items=1,
                    ),
                    "owners": ListShape(
                        TEXT,
                        "Whose quota groups: names of owners. An owner has a quota group when it declares the quota, or when one "
                        "of its entities is a client of it. Left out: all.",
                        min_items=1,
                        examples=[["team-payments"]],
                    ),
                    "match": SELECTOR,
                    "keys": ListShape(
                        ChoiceShape({key.value: key.value for key in QuotaKey}), "Which quota keys. Left out: all.", min_items=1
                    ),
                    "seconds": NumberShape("The fewest seconds over the limit that fail (default 1).", type="integer", minimum=1),
                    "unchanged": FlagShape("True: quota groups that the change leaves as they are, too."),
                    "reason": REASON,
                },
                required=("verdicts",),
            ),
            "The backtest fails with exit code 1 when a quota group meets every condition of one rule.",
            examples=[
                [
                    {"verdicts": ["throttled"], "owners": ["team-payments"], "reason": "payments are never throttled"},
                    {"verdicts": ["throttled", "possible"], "match": {"user": "replicator"}},
                ]
            ],
        ),
    },
    min_properties=1,
)


_SETTINGS: Final = RecordShape(
    None,
    "Settings of the brokers that decide how quotas are enforced, as their server.properties has them. The backtest models them. "
    "Left out: Kafka's defaults.",
    {
        WINDOW_NUM: NumberShape(
            "Samples of the rate of bytes, request time and connections (default 11).", "integer", minimum=1, maximum=100_000
        ),
        WINDOW_SECONDS: NumberShape("Seconds of one of them (default 1).", "integer", minimum=1, maximum=100_000),
        CONTROLLER_WINDOW_NUM: NumberShape(
            "The same for controller mutations: with the size, the size of a token bucket in seconds of its limit (default 11).",
            "integer",
            minimum=1,
            maximum=100_000,
        ),
        CONTROLLER_WINDOW_SECONDS: NumberShape("Seconds of one of them (default 1).", "integer", minimum=1, maximum=100_000),
    },
    min_properties=1,
    examples=[{WINDOW_NUM: 31, WINDOW_SECONDS: 2}],
)
_NAME: Final = "[A-Za-z_][A-Za-z0-9_]*"
_CALLBACK: Final = RecordShape(
    CallbackClass,
    "A Python class that stands for the brokers' client.quota.callback.class: who shares which limit. It is code: the "
    "backtest loads it when it is named by a trusted reference or on the command line.",
    {
        "class": TextShape(
            "MODULE:CLASS, importable where the backtest runs. Or kafkaquotas.callback.GroupQuotaCallback, the broker plugin "
            "with groups, which every command knows.",
            pattern=rf"^{_NAME}(\.{_NAME})*:{_NAME}$|^kafkaquotas\.callback\.GroupQuotaCallback$",
        ),
        "options": LabelsShape("Handed to the class as text to text."),
    },
    required=("class",),
    attributes={"class": "name"},
    examples=[{"class": "quota_groups.callback:GroupQuotaCallback", "options": {"separator": "_"}}],
)


def _matchers(node: YamlSequence, out: Collector) -> tuple[LabelMatcher, ...] | None:
    """Return the matchers, ``None`` when the schema refused one: fewer matchers choose other series."""
    texts = [text for item in node.items if isinstance(item, YamlScalar) and (text := _MATCHER.read(item, out))]
    return tuple(map(LabelMatcher.parse, texts)) if len(texts) == len(node.items) else None


_MATCHER: Final = TextShape(pattern=r'^[a-zA-Z_][a-zA-Z0-9_]*(=|!=|=~|!~)"([^"\\\u0000-\u001f]|\\["\\])*"$')


def _traffic(
    node: YamlMapping, out: Collector, *, prometheus: str | None = None, source: str | None = None, **values: Any
) -> MetricServer | TrafficPlace:
    if source is None:
        return MetricServer(address=prometheus or "", **values)
    if values.keys() - {"days"}:
        out.add("conflicting-traffic", "httpConfig and match are for prometheus, not for a source. Remove them", node)
    return TrafficPlace(place=source, days=values.get("days"))


_TRAFFIC: Final = RecordShape(
    _traffic,
    "The recorded traffic that backtest reads without --traffic: a Prometheus server, or a source. With --trusted-ref it is that "
    "of the reference: a pull request can neither choose its own traffic, nor send the login to another host.",
    {
        "prometheus": TextShape(
            "http(s)://HOST[:PORT][/PATH] of Prometheus, Thanos, Mimir or VictoriaMetrics, without a login.",
            pattern=r"^https?://[^@?#\s]+$",
        ),
        "source": TextShape(
            "Recorded traffic as --traffic takes it. A path, from this file, leads to a folder of compact, Parquet or request "
            "logs. Spark reads an address (s3a://, hdfs://, file://) or table:NAME. refs/kafka-quotas/traffic/NAME is a git "
            "reference of this repository whose commit has such a folder.",
            pattern=r"^[^=\u0000-\u001f]+$",
        ),
        "httpConfig": TextShape(
            "For prometheus: path, from this file, of a file with the login in the form of Prometheus's own http_config. Its "
            "name does not end in .yaml, since those are manifests."
        ),
        "match": ListShape(
            _MATCHER, "For prometheus: conditions on labels that choose this cluster's series. All apply.", parse=_matchers
        ),
        "days": NumberShape(
            f"How many days before now are read without --since (default {DEFAULT_DAYS} of prometheus, all of a source). A path "
            "and a git reference are read whole.",
            type="integer",
            minimum=1,
            maximum=366,
        ),
    },
    one_of=({"required": ["prometheus"]}, {"required": ["source"]}),
    examples=[
        {"prometheus": "https://prometheus.example.org/", "match": ['cluster="prod"'], "days": 14},
        {"source": "refs/kafka-quotas/traffic/prod"},
        {"source": "s3a://lake/quota-seconds", "days": 14},
    ],
)


def _cluster(root: YamlMapping, out: Collector, **values: Any) -> ClusterDocument:
    parts: dict[str, Any] = {"safety": SafetyRules, "brokers": DeclaredBrokers}
    for name, cls in parts.items():
        parts[name] = cls(**{each.name: values.pop(each.name) for each in fields(cls) if each.name in values})
    spec = root.items.get("spec")
    written = spec.items if isinstance(spec, YamlMapping) else {}
    made = ClusterSpec(span=out.span(root), places={name: out.span(node) for name, node in written.items()}, **parts, **values)
    return ClusterDocument(file=out.file, span=out.span(root), spec=made)


CLUSTER: Final = ManifestShape(
    "Cluster",
    "One Kafka cluster: how to reach it, what this repository owns there, and how much one run may change.",
    metadata=RecordShape(None, "Name and labels.", {
        "name": TextShape("What --cluster and spec.clusters call it."),
        "labels": LabelsShape("For spec.clusters: {labels: ...}."),
    }, required=("name",)),
    spec=RecordShape(
    None,
        "Connection, ownership and limits.",
        {
            "clusterId": TextShape("Kafka's own id of the cluster. When given, it is compared before any write."),
            "connection": _CONNECTION,
            "scope": RecordShape(
                Scope,
                "What this repository owns. Nothing outside is ever written. Left out: every user, client-id and ip entity.",
                {
                    "include": ListShape(SELECTOR, "Entities that are owned. Left out: all."),
                    "exclude": ListShape(SELECTOR, "Entities that are not owned, also where include has them."),
                },
            ),
            "prune": ChoiceShape(
                Prune,
                "What happens to whole entities in scope that no manifest declares: left, removed once guard prune is accepted, "
                "or removed.",
            ),
            "rebalance": ChoiceShape(
                RebalancePolicy,
                "What happens to the parts of a clusterTotal when brokers come or go: they stay, they change once guard "
                "rebalance is accepted, or they change with the next apply. Left out: confirm.",
            ),
            "protected": ListShape(SELECTOR, "A change to one of these trips the guard protected-entity."),
            "guards": GUARDS,
            "freeze": FREEZE,
            "accept": ACCEPT,
            "backtest": _BACKTEST,
            "brokerSettings": _SETTINGS,
            "quotaCallback": _CALLBACK,
            "traffic": _TRAFFIC,
            "profiles": TableShape(
 profile,
 f"{ABOUT_PROFILES} They change those of the Repository manifest, value by value.",
 PROFILE,
 examples=PROFILE_EXAMPLES,
),
        },
        required=("prune",),
        attributes={"brokerSettings": "settings", "quotaCallback": "callback"},
    ),
    make=_cluster,
)  # fmt: skip
