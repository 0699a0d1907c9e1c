"""Cluster manifests into ``ClusterSpec``: connection, scope, broker settings, backtest policy, webhooks.

Fields that the schema refused keep their built-in value; their findings are reported where the schema is checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from reconciler.formats import Fields, Shape, choice, document, flag, labels, listing, number, record, text
from reconciler.manifest.collector import Collector
from reconciler.manifest.documents import ClusterDocument
from reconciler.manifest.fields import SELECTOR, TEXT, names_or_labels, selectors
from reconciler.manifest.profiles import profiles
from reconciler.manifest.quota_values import quota_shape
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
    Isolation,
    LabelMatcher,
    MetricServer,
    OwnerChoice,
    Prune,
    QuotaKey,
    RebalancePolicy,
    SafetyRules,
    Scope,
    StrimziOperators,
    Verdict,
    Webhook,
)
from reconciler.resolution import CONTROLLER_WINDOW_NUM, CONTROLLER_WINDOW_SECONDS, WINDOW_NUM, WINDOW_SECONDS
from reconciler.yaml import YamlMapping, YamlScalar, YamlSequence


def _connection(node: YamlMapping, out: Collector, **values: Any) -> Connection:
    connection = Connection(**values)
    if connection.bootstrap_servers and connection.zookeeper:
        out.add("conflicting-connection", "give bootstrapServers or zookeeper, not both", node)
    return connection


_CONNECTION: Final = record(
    _connection,
    "bootstrapServers, or zookeeper. Secrets only ever in the properties file.",
    {
        "bootstrapServers": listing(TEXT, "host:port of some brokers.", minItems=1),
        "properties": text("Path of a Java client.properties file with the security settings."),
        "zookeeper": text("host:port,host:port/chroot for clusters that keep quotas in ZooKeeper."),
    },
)


def _owners(node: YamlMapping | YamlSequence, _: Collector) -> OwnerChoice | None:
    if isinstance(node, YamlSequence):
        return OwnerChoice(names=tuple(item.text for item in node.items if isinstance(item, YamlScalar)))
    wanted = node.items.get("labels")
    return OwnerChoice(labels=labels("").read(wanted, None)) if isinstance(wanted, YamlMapping) else None


_BACKTEST: Final = record(
    BacktestPolicy,
    "What a backtest must not find, and how much history its verdicts need.",
    {
        "history": record(
            HistoryNeeds,
            "Below one of these, a bucket that would be clear is inconclusive.",
            {
                "hours": number("From the first to the last recorded request (default 24).", minimum=0),
                "coveragePercent": number(
                    "Percent of the minutes of the history that are in no hole of the broker's recording (default 95).",
                    minimum=0,
                    maximum=100,
                ),
            },
            minProperties=1,
        ),
        "fail": listing(
            record(
                FailRule,
                "One rule: every field that is given is a condition.",
                {
                    "verdicts": listing(
                        choice(
                            {each.value: each for each in (Verdict.THROTTLED, Verdict.POSSIBLE, Verdict.INCONCLUSIVE)},
                        ),
                        "Which verdicts fail.",
                        minItems=1,
                    ),
                    "owners": Shape(
                        schema=names_or_labels(
                            "Whose buckets: names of owners, or {labels: {...}} that the Repository document gives to owners. An "
                            "owner has a bucket when it declares the quota, or when one of its entities is a client of it. Left "
                            "out: all.",
                            "an owner",
                            [["team-payments"], {"labels": {"tier": "gold"}}],
                        ),
                        nodes=(YamlSequence, YamlMapping),
                        read=_owners,
                    ),
                    "match": SELECTOR,
                    "keys": listing(
                        choice({key.value: key.value for key in QuotaKey}),
                        "Which quota keys. Left out: all.",
                        minItems=1,
                    ),
                    "seconds": number("The fewest seconds over the limit that fail (default 1).", whole=True, minimum=1),
                    "unchanged": flag("True: buckets that the change leaves as they are, too."),
                    "reason": REASON,
                },
                needs=("verdicts",),
            ),
            "The backtest fails with exit code 1 when a quota group meets every condition of one rule.",
            examples=[
                [
                    {"verdicts": ["throttled"], "owners": {"labels": {"tier": "gold"}}, "reason": "gold is never throttled"},
                    {"verdicts": ["throttled", "possible"], "match": {"user": "replicator"}},
                ]
            ],
        ),
    },
    minProperties=1,
)


def _setting(about: str) -> Shape:
    return number(about, whole=True, minimum=1, maximum=100_000)


_SETTINGS: Final = record(
    dict,
    "Settings of the brokers that decide how quotas are enforced, as their server.properties has them. The backtest models them. "
    "Left out: Kafka's defaults.",
    {
        WINDOW_NUM: _setting("Samples of the rate of bytes, request time and connections (default 11)."),
        WINDOW_SECONDS: _setting("Seconds of one of them (default 1)."),
        CONTROLLER_WINDOW_NUM: _setting(
            "The same for controller mutations: with the size, the size of a token bucket in seconds of its limit (default 11)."
        ),
        CONTROLLER_WINDOW_SECONDS: _setting("Seconds of one of them (default 1)."),
    },
    minProperties=1,
    examples=[{WINDOW_NUM: 31, WINDOW_SECONDS: 2}],
)
_NAME: Final = "[A-Za-z_][A-Za-z0-9_]*"
_CALLBACK: Final = record(
    CallbackClass,
    "A Python class that stands for the brokers' client.quota.callback.class: who shares which limit. It is code: the "
    "backtest loads it when it is named by a trusted reference or on the command line.",
    {
        "class": text(
            "MODULE:CLASS, importable where the backtest runs. Or kafkaquotas.callback.GroupQuotaCallback, the broker plugin "
            "with groups, which every command knows.",
            pattern=rf"^{_NAME}(\.{_NAME})*:{_NAME}$|^kafkaquotas\.callback\.GroupQuotaCallback$",
        ),
        "options": labels("Handed to the class as text to text."),
    },
    needs=("class",),
    attributes={"class": "name"},
    examples=[{"class": "quota_groups.callback:GroupQuotaCallback", "options": {"separator": "_"}}],
)


def _matchers(node: YamlSequence, out: Collector) -> tuple[LabelMatcher, ...] | None:
    """None of them when the schema refused one, since fewer matchers choose other series."""
    texts = [text for item in node.items if isinstance(item, YamlScalar) and (text := _MATCHER.read(item, out))]
    return tuple(map(LabelMatcher.parse, texts)) if len(texts) == len(node.items) else None


_MATCHER: Final = text(
    pattern=r'^[a-zA-Z_][a-zA-Z0-9_]*(=|!=|=~|!~)"([^"\\\u0000-\u001f]|\\["\\])*"$',
)
_TRAFFIC: Final = record(
    MetricServer,
    "The Prometheus server whose samples backtest reads without --traffic. With --trusted-ref it is that of the reference: a "
    "pull request cannot send the login to another host.",
    {
        "prometheus": text(
            "http(s)://HOST[:PORT][/PATH] of Prometheus, Thanos, Mimir or VictoriaMetrics, without a login.",
            pattern=r"^https?://[^@?#\s]+$",
        ),
        "httpConfig": text(
            "Path, from this file, of a file with the login in the form of Prometheus's own http_config. Its name does not end "
            "in .yaml, since those are manifests."
        ),
        "match": listing(_MATCHER, "Conditions on labels that choose this cluster's series. All apply.").reading(_matchers),
        "days": number(
            "How many days before now are read without --since.", whole=True, minimum=1, maximum=366, default=DEFAULT_DAYS
        ),
    },
    needs=("prometheus",),
    attributes={"prometheus": "address"},
    examples=[{"prometheus": "https://prometheus.example.org/", "match": ['cluster="prod"'], "days": 14}],
)


_EVENTS: Final = ("drift", "applied", "failed", "resolved")


def _webhook(
    _node: YamlMapping, _out: Collector, *, url: Mapping[str, str], events: tuple[str, ...] = (), **values: str
) -> Webhook:
    return Webhook(events=frozenset(events), **values, **url)


_NOTIFICATIONS: Final = listing(
    record(
        _webhook,
        "One webhook. Its address is a secret, so the manifest names where it is.",
        {
            "name": text("The name of the webhook in warnings."),
            "format": choice(
                {"json": "json", "slack": "slack"},
                "json: a document of the schema notification. slack: a message for an incoming webhook of Slack, Mattermost or "
                "Rocket.Chat.",
                default="json",
            ),
            "url": record(
                dict,
                "Where the address is: in an environment variable, or in a file.",
                {
                    "env": text("The environment variable with the address.", pattern="^[A-Za-z_][A-Za-z0-9_]*$"),
                    "file": text("The file with the address, such as a mounted secret."),
                },
                attributes={"env": "variable"},
                minProperties=1,
                maxProperties=1,
                examples=[{"env": "QUOTAS_WEBHOOK"}, {"file": "/run/secrets/webhook"}],
            ),
            "events": listing(
                choice(dict(zip(_EVENTS, _EVENTS, strict=True))),
                "What is sent. Left out: all of drift, applied, failed and resolved.",
                minItems=1,
            ),
            "caFile": text("Trust the certificates in this PEM file only. Left out: those of the system."),
        },
        needs=("name", "url"),
    ),
    "Webhooks that get drift, writes and failures of this cluster. Needs the extra notify.",
)


def _cluster(root: YamlMapping, out: Collector, **values: Any) -> ClusterDocument:
    def taken(cls: type[Any]) -> Any:
        return cls(**{each.name: values.pop(each.name) for each in fields(cls) if each.name in values})

    spec = root.items.get("spec")
    written = spec.items if isinstance(spec, YamlMapping) else {}
    made = ClusterSpec(
        safety=taken(SafetyRules),
        brokers=taken(DeclaredBrokers),
        span=out.span(root),
        places={name: out.span(node) for name, node in written.items()},
        **values,
    )
    return ClusterDocument(file=out.file, span=out.span(root), spec=made)


CLUSTER: Final = document(
    "Cluster",
    "One Kafka cluster: how to reach it, what this repository owns there, and how much one run may change.",
    metadata=Fields("Name and labels.", {
        "name": text("What --cluster and spec.clusters call it."),
        "labels": labels("For spec.clusters: {labels: ...}."),
    }, needs=("name",)),
    spec=Fields(
        "Connection, ownership and limits.",
        {
            "clusterId": text("Kafka's own id of the cluster. When given, it is compared before any write."),
            "connection": _CONNECTION,
            "scope": record(
                Scope,
                "What this repository owns. Nothing outside is ever written. Left out: every user, client-id and ip entity.",
                {
                    "include": selectors("Entities that are owned. Left out: all."),
                    "exclude": selectors("Entities that are not owned, also where include has them."),
                },
            ),
            "prune": choice(
                Prune,
                "What happens to whole entities in scope that no manifest declares: left, removed once guard prune is accepted, "
                "or removed.",
            ),
            "rebalance": choice(
                RebalancePolicy,
                "What happens to the parts of a clusterTotal when brokers come or go: they stay, they change once guard "
                "rebalance is accepted, or they change with the next apply. Left out: confirm.",
            ),
            "isolate": choice(
                Isolation,
                "What a guard that trips, or a manifest with errors, stops: all changes of the cluster (none), or the changes "
                "of the same owner and those that depend on them (owner). Left out: none.",
            ),
            "protected": selectors("A change to one of these trips the guard protected-entity."),
            "guards": GUARDS,
            "freeze": FREEZE,
            "accept": ACCEPT,
            "capacity": record(
                lambda _node, _out, **values: {key: quota.value for key, quota in values.items()},
                "What one broker can do in all, written as quotas are. Shares without of divide it. validate, plan and backtest "
                "compare the sum of the limits with it.",
                {key.value: quota_shape(key, f"Of {key}.") for key in QuotaKey},
                minProperties=1,
                examples=[{"producer_byte_rate": "500MiB", "consumer_byte_rate": "800MiB"}],
            ),
            "backtest": _BACKTEST,
            "brokerSettings": _SETTINGS,
            "quotaCallback": _CALLBACK,
            "strimzi": record(
                StrimziOperators,
                "Strimzi's operators write quotas of users on this cluster. Findings name declared quotas that they remove or "
                "overwrite.",
                {
                    "ignoredUsers": selectors(
                        "Users without a KafkaUser that STRIMZI_IGNORED_USERS_PATTERN of the User Operator covers.",
                        examples=[[{"user": {"prefix": "mirror-"}}]],
                    )
                },
                attributes={"ignoredUsers": "ignored"},
                examples=[{"ignoredUsers": [{"user": {"prefix": "mirror-"}}]}],
            ),
            "traffic": _TRAFFIC,
            "notifications": _NOTIFICATIONS,
            "profiles": profiles("They change those of the Repository manifest, value by value."),
        },
        needs=("prune",),
        attributes={"brokerSettings": "settings", "quotaCallback": "callback"},
    ),
    make=_cluster,
)  # fmt: skip
