"""Which exporters to read, and the pages of them."""

from __future__ import annotations

import re
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.errors import UsageError
from reconciler.features.prometheus.exporter_page import PAGE_PREFIX, ExporterPage
from reconciler.model import Message, compose, escaped, name_part

if TYPE_CHECKING:
    from reconciler.features.prometheus.http import HttpLogin

_ARGUMENT: Final = re.compile(r"(?:([0-9]{1,9})=)?metrics\+(https?://.*)", re.DOTALL | re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterTarget:
    """The exporter of one broker."""

    broker: int
    address: str


def exporter_targets(arguments: Sequence[str]) -> tuple[ExporterTarget, ...]:
    """The exporters of ``[BROKER=]metrics+http(s)://HOST[:PORT][/PATH]`` arguments.

    Without ``BROKER=``, the number at the end of the host's name is the broker. Raises ``UsageError``.
    """
    targets = tuple(_target(argument) for argument in arguments)
    for number, target in enumerate(targets):
        for other in targets[:number]:
            if other.broker == target.broker:
                raise UsageError(f"--traffic names broker {target.broker} twice: {other.address} and {target.address}")
            if other.address == target.address:
                raise UsageError(f"--traffic names {target.address} for broker {other.broker} and for broker {target.broker}")
    return targets


def open_page(
    address: str,
    broker: int | None,
    *,
    login: HttpLogin | None = None,
    timeout_s: float = 10.0,
    clock: Callable[[], float] = time.time,
) -> ExporterPage:
    """An exporter's page with the series of quotas, which get the label of the ``broker``, if it is known.

    Raises ``UsageError`` for an address that is not one.
    """
    from reconciler.features.prometheus.metric_layouts import NAMES_TO_READ

    labels = {} if broker is None else {"broker": str(broker)}
    return ExporterPage(address, names=NAMES_TO_READ, labels=labels, login=login, timeout_s=timeout_s, clock=clock)


def _target(argument: str) -> ExporterTarget:
    from reconciler.features.prometheus.metric_layouts import broker_of

    match = _ARGUMENT.fullmatch(argument)
    if match is None:
        raise UsageError(f"A metrics page is {PAGE_PREFIX}http(s)://HOST[:PORT]/metrics, not {escaped(argument)!r}")
    address = match[2]
    broker = int(match[1]) if match[1] else broker_of({"instance": _host(address)})
    if broker is None:
        raise UsageError(f"--traffic {escaped(argument)} does not name the broker. Write 1={escaped(argument)} for broker 1")
    # The page refuses what is not an address.
    return ExporterTarget(broker=broker, address=ExporterPage(address, names=()).address)


def _host(address: str) -> str:
    try:
        return urllib.parse.urlsplit(address).netloc
    except ValueError:
        return ""


_FILES: Final = "Give traffic of the clients as files in the canonical traffic schema"
_LONGEST_SERIES: Final = 200
_EXPORTER: Final = "Give the page of an exporter in the broker, such as the jmx_exporter's"


_TOPICS: Final = "shows topics and consumer groups, and no rate of a client"
_SERVERS: Final = (
    (
        r"(?:redpanda|vectorized)_.+",
        "Redpanda",
        "Redpanda shows throughput and throttles by kind of quota rule, and no rate of a client",
        _FILES,
    ),
    (
        r"confluent_kafka_.+",
        "Confluent Cloud",
        "Confluent Cloud shows bytes by principal, and neither client-ids nor the rates that a broker compares",
        _FILES,
    ),
)
"""Servers that answer Kafka's requests and are not Kafka: whole metric names, the program, what it shows, and what serves."""
_EXPORTERS: Final = (
    (
        r"kafka_exporter_build_info|kafka_consumergroup_.+|kafka_topic_partition_.+",
        "kafka_exporter",
        f"kafka_exporter {_TOPICS}",
        _EXPORTER,
    ),
    (r"kminion_.+", "KMinion", f"KMinion {_TOPICS}", _EXPORTER),
    (
        r"(?i:kafka_(?:connect|producer|consumer|streams)_.+)",
        "a client or worker of Kafka",
        "Clients and workers show their own rates, and no broker's",
        _EXPORTER,
    ),
)
_BROKER: Final = re.compile(r"(?:[a-z]+_)*?kafka_(?:server|network|log|controller|cluster)_.+", re.IGNORECASE)
_MACHINE: Final = re.compile(r"(?:jvm|java|process|go|promhttp|jmx|python|node)_.+")
_SHOWN: Final = 3


def foreign_page(source: str, names: Sequence[str]) -> Message | None:
    """Describe a page without quota sensors by its metric names. Returns ``None`` for a broker of Kafka, and without names."""
    is_broker = any(_BROKER.fullmatch(name) for name in names)
    for pattern, program, shows, advice in _SERVERS if is_broker else (*_SERVERS, *_EXPORTERS):
        example = next((name for name in names if re.fullmatch(pattern, name)), None)
        if example is not None:
            return compose(
                "{source} is a page of {program}, for example {example}. {shows}. {advice}.",
                source=name_part(source),
                program=program,
                example=name_part(escaped(example)),
                shows=shows,
                advice=advice,
            )
    if not names or is_broker:
        return None
    others = [name for name in names if not _MACHINE.fullmatch(name)] or list(names)
    return compose(
        "{source} has no metric of a Kafka broker. It has {examples}. {advice}.",
        source=name_part(source),
        examples=name_part(", ".join(escaped(name) for name in others[:_SHOWN])),
        advice=_EXPORTER,
    )


def foreign_selector() -> str:
    """Series, as PromQL, by which a metrics server shows that it has another program's metrics."""
    return '{__name__=~"redpanda_application_.+|vectorized_application_.+|kafka_exporter_build_info|kminion_exporter_up"}'


def series_text(labels: Mapping[str, str]) -> str:
    """A series for people, as Prometheus writes it, cut when it is long."""
    pairs = ", ".join(f'{name}="{value}"' for name, value in sorted(labels.items()) if name != "__name__")
    text = escaped(f"{labels.get('__name__', '')}{{{pairs}}}")
    return text if len(text) <= _LONGEST_SERIES else f"{text[: _LONGEST_SERIES - 3]}..."
