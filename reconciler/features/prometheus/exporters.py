"""Which exporters to read, and the pages of them."""

from __future__ import annotations

import re
import time
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.errors import UsageError
from reconciler.features.prometheus.exporter_page import PAGE_PREFIX, ExporterPage
from reconciler.model import escaped
from reconciler.workflows import metric_rules, read_client_names, read_trusted_mapping

if TYPE_CHECKING:
    from reconciler.features.prometheus.server_api import HttpLogin
    from reconciler.traffic import MetricRule, SeriesReader

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
    rules: Sequence[MetricRule] = (),
    login: HttpLogin | None = None,
    timeout_s: float = 10.0,
    clock: Callable[[], float] = time.time,
) -> ExporterPage:
    """An exporter's page with the series of quotas, which get the label of the ``broker``, if it is known.

    ``rules``: further series. Raises ``UsageError`` for an address that is not one.
    """
    from reconciler.traffic import names_to_read

    labels = {} if broker is None else {"broker": str(broker)}
    return ExporterPage(address, names=names_to_read(rules), labels=labels, login=login, timeout_s=timeout_s, clock=clock)


def exporter_rules(mapping: Path | None) -> tuple[MetricRule, ...]:
    """How a mapping file reads series of other names; none without one.

    Raises ``ManifestError`` with all findings, ``TrafficError`` for a missing file and ``UsageError`` for a mapping of files.
    """
    return metric_rules(read_trusted_mapping(mapping, None), what="pages of exporters")


def series_reader(known_clients: Path | None, rules: Sequence[MetricRule] = ()) -> SeriesReader:
    """A reader that knows these clients, for exporters that leave user and client-id in metric names, and these rules."""
    from reconciler.traffic import SeriesReader

    return SeriesReader(read_client_names(known_clients), tuple(rules))


def _target(argument: str) -> ExporterTarget:
    from reconciler.traffic import broker_of

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
