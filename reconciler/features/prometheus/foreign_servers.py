"""Pages that have no quota sensors of Kafka: which program made them, by their metric names, and what serves in their place.

Sources: Redpanda documentation, "Public metrics" and "Internal metrics" (histograms by kind of quota rule); the metric names that
kafka_exporter, KMinion, Confluent Cloud's export and Prometheus's own programs document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.model import Message, compose, escaped, name_part

_FILES: Final = "Give traffic of the clients as files in the canonical traffic schema"
_LONGEST_SERIES: Final = 200
_EXPORTER: Final = "Give the page of an exporter in the broker, such as the jmx_exporter's"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Program:
    name: str
    names: re.Pattern[str]
    """Whole metric names that it alone has."""
    shows: str
    advice: str


_SERVERS: Final = (
    _Program(
        name="Redpanda",
        names=re.compile(r"(?:redpanda|vectorized)_.+"),
        shows="Redpanda shows throughput and throttles by kind of quota rule, and no rate of a client",
        advice=f"{_FILES}. Quotas of Kafka do not make Redpanda show more",
    ),
    _Program(
        name="Confluent Cloud",
        names=re.compile(r"confluent_kafka_.+"),
        shows="Confluent Cloud shows bytes by principal, and neither client-ids nor the rates that a broker compares",
        advice=_FILES,
    ),
)
"""They answer Kafka's requests, and are not Kafka."""
_EXPORTERS: Final = (
    _Program(
        name="kafka_exporter",
        names=re.compile(r"kafka_exporter_build_info|kafka_consumergroup_.+|kafka_topic_partition_.+"),
        shows="kafka_exporter shows topics and consumer groups, and no rate of a client",
        advice=_EXPORTER,
    ),
    _Program(
        name="KMinion",
        names=re.compile(r"kminion_.+"),
        shows="KMinion shows topics and consumer groups, and no rate of a client",
        advice=_EXPORTER,
    ),
    _Program(
        name="a client or worker of Kafka",
        names=re.compile(r"kafka_(?:connect|producer|consumer|streams)_.+", re.IGNORECASE),
        shows="Clients and workers show their own rates, and no broker's",
        advice=_EXPORTER,
    ),
)
_BROKER: Final = re.compile(r"(?:[a-z]+_)*?kafka_(?:server|network|log|controller|cluster)_.+", re.IGNORECASE)
_MACHINE: Final = re.compile(r"(?:jvm|java|process|go|promhttp|jmx|python|node)_.+")
_SHOWN: Final = 3


def foreign_page(source: str, names: Sequence[str]) -> Message | None:
    """What a page without quota sensors is, with metric names that it has; ``None`` for a broker of Kafka, and without names."""
    is_broker = any(_BROKER.fullmatch(name) for name in names)
    for program in _SERVERS if is_broker else (*_SERVERS, *_EXPORTERS):
        example = next((name for name in names if program.names.fullmatch(name)), None)
        if example is not None:
            return compose(
                "{source} is a page of {program}, for example {example}. {shows}. {advice}.",
                source=name_part(source),
                program=program.name,
                example=name_part(escaped(example)),
                shows=program.shows,
                advice=program.advice,
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
