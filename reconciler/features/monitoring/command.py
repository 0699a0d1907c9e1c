"""``kafka-quotas rules``: Prometheus recording and alert rules, and a Grafana dashboard, of the limits of one cluster."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.cli import option_groups, output
from reconciler.cli.declaration import group, option
from reconciler.cli.results import OutFile, Result
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.features.monitoring.prometheus_rules import QuotaRules, RuleFile
    from reconciler.workflows import Sources

_FORMATS: Final = ("prometheus", "grafana")
_LAYOUTS: Final = ("default-format", "quota-labels", "lower-case", "strimzi")
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LONGEST_S: Final = 366 * 86_400
_MATCHER: Final = r'[a-zA-Z_][a-zA-Z0-9_]*(?:=~|!~|!=|=)"(?:[^"\\\n]|\\.)*"'
_SELECTOR: Final = re.compile(rf"{_MATCHER}(?:,{_MATCHER})*")


def _selector(text: str) -> str:
    if not text.isprintable() or not _SELECTOR.fullmatch(text):
        raise ArgumentTypeError(f'{text!r} is not a list of matchers such as job="kafka",env="prod"')
    return text


def _seconds(text: str) -> int:
    number, unit = text[:-1], text[-1:]
    seconds = int(number) * _UNITS[unit] if number.isascii() and number.isdigit() and len(number) < 10 and unit in _UNITS else 0
    if not 0 < seconds <= _LONGEST_S:
        raise ArgumentTypeError(f"{text!r} is not a time such as 30s, 5m, 1h or 7d")
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesOptions:
    """Which series the rules read."""

    layout: str = option(
        "--layout",
        section="Series",
        choices=_LAYOUTS,
        default=_LAYOUTS[0],
        metavar="LAYOUT",
        help="read the names of this exporter. default-format: jmx_exporter without rules, Amazon MSK. quota-labels: its example "
        f"kafka-2_0_0, koperator. lower-case: Confluent. strimzi: Strimzi's metrics-reporter [default: {_LAYOUTS[0]}]",
    )
    selector: str | None = option(
        "--selector",
        section="Series",
        type=_selector,
        metavar="MATCHERS",
        help='read only series with these labels, such as \'job="kafka",env="prod"\' [default: all series]',
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesArguments:
    """The command line of ``rules``."""

    paths: tuple[str, ...] = option_groups.connection_paths(", and the limits")
    state: str = option(
        "--state",
        default="manifests",
        metavar="STATE",
        help="take the limits of the manifests, current (the cluster, or the snapshot of --current), planned, or the file of a "
        "snapshot [default: manifests]",
    )
    series: SeriesOptions = group(SeriesOptions)
    pending: int = option(
        "--for",
        section="Alerts",
        type=_seconds,
        default=300,
        metavar="TIME",
        help="alert once it lasts this long, such as 30s or 10m [default: 5m]",
    )
    unused: int = option(
        "--unused",
        section="Alerts",
        type=_seconds,
        default=7 * 86_400,
        metavar="TIME",
        help="alert on limits without use for this long [default: 7d]",
    )
    trusted_ref: str | None = option_groups.TRUSTED_REF
    connection: option_groups.ConnectionOptions = group(option_groups.ConnectionOptions)
    current: str | None = option_groups.CURRENT
    format: str = option_groups.format_option(_FORMATS)
    out: tuple[OutFile, ...] = option_groups.out_option(_FORMATS)


def run(args: RulesArguments) -> Result:
    """Read the limits and make the rules."""
    from reconciler.features.monitoring.grafana_dashboard import render_grafana_dashboard
    from reconciler.features.monitoring.prometheus_rules import RuleLayout, RuleOptions, render_prometheus_rules
    from reconciler.workflows import Sources, Where, check_names

    check_names([args.state])
    access = args.connection.access(args.current)
    sources = Sources(Where(paths=args.paths, cluster=args.connection.cluster, access=access, trusted_ref=args.trusted_ref))
    quotas = _limits(sources, args)
    options = RuleOptions(
        layout=RuleLayout(args.series.layout),
        selector=args.series.selector or "",
        pending_s=args.pending,
        unused_s=args.unused,
    )
    rules = render_prometheus_rules(quotas, options)
    return Result(
        beside=sources.findings,
        forms={"prometheus": lambda: rules.text, "grafana": lambda: render_grafana_dashboard(quotas.cluster)},
        notes=() if output.is_quiet() else tuple(_notes(rules)),
    )


def _limits(sources: Sources, args: RulesArguments) -> QuotaRules:
    """The limits of a state, and who declares them."""
    from reconciler.features.monitoring.prometheus_rules import QuotaRules
    from reconciler.resolution import ViewKind

    view = sources.view(args.state)
    if view.caveats.callback is not None:
        raise UsageError(f"Rules need limits that are known: {view.caveats.callback}")
    cluster = args.connection.cluster or view.cluster.name or view.cluster.id
    if not cluster:
        raise UsageError("The rules need the name of the cluster. Pass --cluster NAME with a folder of manifests")
    origins = {
        ViewKind.MANIFESTS: "the manifests",
        ViewKind.PLANNED: "the cluster after the plan of the manifests",
        ViewKind.CLUSTER: "the live cluster",
        ViewKind.SNAPSHOT: "a snapshot",
    }
    return QuotaRules(cluster=cluster, origin=origins[view.kind], entities=view.entities, owners=sources.owners())


def _notes(rules: RuleFile) -> Iterator[str]:
    from reconciler.text import list_entities

    if not rules.limits:
        yield "note: the rules have no limit to compare, so they only record rates"
    for reason, entities in rules.left_out.items():
        yield f"note: the rules leave out {list_entities(entities)}: {reason}"
