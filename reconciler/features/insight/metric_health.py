"""Checks of a metrics server or of exporters' pages: what they show of which broker, and the repair of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reconciler.errors import TrafficError
from reconciler.features.insight.doctor_views import DoctorCheck, failed, passed, warned
from reconciler.features.insight.rate_sources import RateReading, RateRequest, read_rates
from reconciler.features.prometheus import Layout, Unattributed
from reconciler.formats import value_text
from reconciler.model import CLIENT_KEYS, Entity, QuotaKey, escaped
from reconciler.text import count_of, list_some
from reconciler.traffic import Kind, Measure

_SHOWN: Final = 10
_TITLES: Final = {
    Layout.QUOTA_LABELS: "jmx_exporter, rules as in the example kafka-2_0_0, or koperator",
    Layout.OLD_RULE_ORDER: "jmx_exporter, an older order of the rules of kafka-2_0_0",
    Layout.NAME_ONLY: "jmx_exporter, rules as in the example kafka-kraft-3_0_0",
    Layout.LOWER_CASE: "Confluent's jmx-monitoring-stacks, Strimzi's metrics-reporter, or rules in lower case",
    Layout.DEFAULT_FORMAT: "jmx_exporter without rules, as Amazon MSK",
}
RULE_ORDER: Final = r"""rules:
  # These lines first: the first rule that matches an MBean wins.
  - pattern: kafka.server<type=(\w+), user=(.+), client-id=(.+)><>([a-z-]+)
    name: kafka_server_quota_$4
    type: GAUGE
    labels: {resource: "$1", user: "$2", clientId: "$3"}
  - pattern: kafka.server<type=(\w+), user=(.+)><>([a-z-]+)
    name: kafka_server_quota_$3
    type: GAUGE
    labels: {resource: "$1", user: "$2"}
  - pattern: kafka.server<type=(\w+), client-id=(.+)><>([a-z-]+)
    name: kafka_server_quota_$3
    type: GAUGE
    labels: {resource: "$1", clientId: "$2"}
  - pattern: kafka.server<type=(\w+)><>queue-size
    name: kafka_server_$1_queue_size
    type: GAUGE
  - pattern: kafka.server<type=(socket-.+), ip=(.+)><>(connection-[a-z-]+)
    name: kafka_server_$1_$3
    type: GAUGE
    labels: {ip: "$2"}
  # Then your own rules.
"""
"""Pairs before single tags, since ``user=(.+)`` also matches a pair."""
_RULES_FIRST: Final = f"Put these rules of the jmx_exporter before all others, and restart the brokers:\n{RULE_ORDER}"
Quotas = Mapping[Entity, Mapping[str, float]]
"""The quotas of a cluster, by entity and key."""


def source_checks(request: RateRequest, *, quotas: Quotas, brokers: Sequence[int] = ()) -> Iterator[DoctorCheck]:
    """Read a metrics server or pages now, and yield the checks of it.

    ``quotas``, ``brokers``: those of the cluster, as far as they are known. Raises ``UsageError`` as ``read_rates``.
    """
    try:
        reading = read_rates(request)
    except TrafficError as error:
        yield failed("source", str(error), "Check the address, the login, and what listens there")
    else:
        yield from reading_checks(reading, quotas=quotas, brokers=brokers)


def reading_checks(reading: RateReading, *, quotas: Quotas, brokers: Sequence[int] = ()) -> Iterator[DoctorCheck]:
    """Yield the checks of what was read. ``quotas``, ``brokers``: those of the cluster, as far as they are known."""
    for problem in reading.problems:
        yield failed("source", str(problem), "Repair this source: it may have brokers and clients that others lack")
    groups = [series for series in reading.series if series.measure is not Measure.QUEUE_SIZE]
    if groups or reading.unknown:
        layouts = ", ".join(f"{_TITLES[layout]} ({count:,})" for layout, count in reading.layouts.items())
        yield passed("series", f"{count_of(len(groups), 'series', 'series')} of quota groups. Names as of: {layouts}.")
        yield from _names(reading)
        yield from _brokers(reading, brokers)
        yield from _keys(reading, quotas)
    elif not reading.problems:
        yield failed("series", "The source has no series of quota groups.", _default_quota(CLIENT_KEYS))


def _names(reading: RateReading) -> Iterator[DoctorCheck]:
    if series := reading.unknown.get(Unattributed.NAME_ONLY, ()):
        yield warned(
            "names",
            f"The clients of {count_of(len(series), 'series', 'series')} are unknown: user and client-id are in the metric name "
            f"only, where case and special characters are lost. An example: {series[0]}.",
            _RULES_FIRST,
        )
    elif Layout.OLD_RULE_ORDER in reading.layouts:
        yield warned(
            "names", "The rules of the exporter leave out muted connections and the connection rates of addresses.", _RULES_FIRST
        )
    unplaced = [*reading.unknown.get(Unattributed.NO_BROKER, ()), *map(escaped, reading.brokers.values())]
    if unplaced:
        yield warned(
            "names",
            f"Series have no broker id, for example those of {unplaced[0]}. Verdicts need one.",
            "Add a label broker to the targets of the scrape configuration. For a page, name the broker: 1=metrics+http://...",
        )


def _brokers(reading: RateReading, brokers: Sequence[int]) -> Iterator[DoctorCheck]:
    """Yield what is shown of each broker, those of the cluster that nothing shows, and those that two exporters show."""
    exporters_of = {broker: exporters for broker, exporters in sorted(reading.exporters.items()) if broker not in reading.brokers}
    words = []
    for broker, exporters in exporters_of.items():
        series = {each for each in reading.series if each.broker == broker}
        kinds = [kind.value for kind in Kind if any(each.kind is kind and each.measure is Measure.RATE for each in series)]
        kinds += [each.value for each in Measure if each is not Measure.RATE and any(shown.measure is each for shown in series)]
        words.append(f"broker {broker} ({escaped(list_some(exporters, 2, between='; '))}) shows {', '.join(kinds)}")
    if words:
        yield passed("exporters", f"{list_some(words, _SHOWN, between='. ')}.")
    if exporters_of and (missing := sorted(set(brokers) - set(exporters_of))):
        yield warned(
            "exporters",
            f"No series comes from broker {list_some([*map(str, missing)], _SHOWN)} of the cluster.",
            "Look whether the server scrapes it, and whether any client uses it",
        )
    for broker, exporters in exporters_of.items():
        if len(exporters) > 1:
            yield warned(
                "exporters",
                f"Broker {broker} has {len(exporters)} exporters: {escaped(list_some(exporters, _SHOWN, between='; '))}.",
                "Choose one cluster with --match if brokers of several clusters have the same id",
            )


def _keys(reading: RateReading, quotas: Quotas) -> Iterator[DoctorCheck]:
    """Keys without a rate. Brokers measure a key only while a quota for it exists."""
    rates = {series.kind.key for series in reading.series if series.measure is Measure.RATE}
    spelled = " ".join(text for series in reading.unknown.values() for text in series).lower()
    silent = [key for key in CLIENT_KEYS if key not in rates and f"kafka_server_{_sensor(key)}_" not in spelled]
    has_pairs = any(series.user is not None and series.client_id is not None for series in reading.series)
    if silent:
        existing = [key for key in silent if any(key.value in values for values in quotas.values())]
        because = "Brokers measure a key only while a quota with it exists"
        if existing:
            names = ", ".join(key.value for key in existing)
            because += f". Quotas with {names} exist, so no client used them, or the exporter leaves them out"
        unused = [key for key in silent if key not in existing]
        remedy = _default_quota(unused) if unused else "Look at the rules of the exporter"
        yield warned("keys", f"No series shows {', '.join(key.value for key in silent)}. {because}.", remedy)
    elif not has_pairs and reading.series:
        yield warned(
            "keys",
            "No series has both a user and a client-id, since no quota of pairs exists. A proposal that limits pairs stays "
            "inconclusive.",
            "Judge such a proposal by a request log",
        )


def _sensor(key: QuotaKey) -> str:
    """Return the sensor's word in the name of a metric."""
    kind = next(kind for kind in Kind if kind.key is key)
    return "controllermutation" if kind is Kind.MUTATION else kind.value


def _default_quota(keys: Sequence[QuotaKey]) -> str:
    """Return the command that makes brokers measure these keys: any other quota of a client comes before that of this entity."""
    values = "".join(f" \\\n  --add {key.value}={value_text(key, key.unreachable)}" for key in keys)
    return (
        "A quota of the default client-id far above any network makes brokers measure every client-id, and overrides no other "
        f"quota:\nkafka-quotas alter --defaults client-id --bootstrap-server HOST:9092{values}"
    )
