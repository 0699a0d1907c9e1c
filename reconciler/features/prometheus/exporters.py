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


def is_page(argument: str) -> bool:
    """Whether a ``--traffic`` argument names the page of an exporter, with or without a broker before it."""
    return argument.startswith(PAGE_PREFIX) or argument.partition("=")[2].startswith(PAGE_PREFIX)


def split_page(argument: str) -> tuple[int | None, str]:
    """Return broker and address of ``[BROKER=]metrics+http(s)://HOST[:PORT][/PATH]``. Raises ``UsageError``."""
    match = _ARGUMENT.fullmatch(argument)
    if match is None:
        raise UsageError(f"A metrics page is {PAGE_PREFIX}http(s)://HOST[:PORT]/metrics, not {escaped(argument)!r}")
    return int(match[1]) if match[1] else None, match[2]


def _target(argument: str) -> ExporterTarget:
    from reconciler.features.prometheus.metric_layouts import broker_of

    broker, text = split_page(argument)
    # The page refuses what is not an address.
    address = ExporterPage(text, names=()).address
    if broker is None:
        broker = broker_of({"instance": urllib.parse.urlsplit(address).netloc})
    if broker is None:
        raise UsageError(f"--traffic {escaped(argument)} does not name the broker. Write 1={escaped(argument)} for broker 1")
    return ExporterTarget(broker=broker, address=address)


_LONGEST_SERIES: Final = 200
_EXPORTER: Final = "Give the page of an exporter in the broker, such as the jmx_exporter's"
_BROKER: Final = re.compile(r"(?!confluent_)(?:[a-z]+_)*?kafka_(?:server|network|log|controller|cluster)_.+", re.IGNORECASE)
_MACHINE: Final = re.compile(r"(?:jvm|java|process|go|promhttp|jmx|python|node)_.+")
_SHOWN: Final = 3


def foreign_page(source: str, names: Sequence[str]) -> Message | None:
    """Describe a page without quota sensors by its metric names. Returns ``None`` for a broker of Kafka, and without names."""
    if not names or any(_BROKER.fullmatch(name) for name in names):
        return None
    others = [name for name in names if not _MACHINE.fullmatch(name)] or list(names)
    return compose(
        "{source} has no metric of a Kafka broker. It has {examples}. {advice}.",
        source=name_part(source),
        examples=name_part(", ".join(escaped(name) for name in others[:_SHOWN])),
        advice=_EXPORTER,
    )


def series_text(labels: Mapping[str, str]) -> str:
    """A series for people, as Prometheus writes it, cut when it is long."""
    pairs = ", ".join(f'{name}="{value}"' for name, value in sorted(labels.items()) if name != "__name__")
    text = escaped(f"{labels.get('__name__', '')}{{{pairs}}}")
    return text if len(text) <= _LONGEST_SERIES else f"{text[: _LONGEST_SERIES - 3]}..."
