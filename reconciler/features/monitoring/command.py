"""``kafka-quotas rules``: Prometheus recording and alert rules, and a Grafana dashboard, of the limits of one cluster."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import ClusterArguments, typed
from reconciler.cli.traffic_options import share
from reconciler.errors import ManifestError, OutputError, UsageError

if TYPE_CHECKING:
    from reconciler.features.monitoring.prometheus_rules import QuotaRules, RuleFile

_FORMATS: Final = ("prometheus", "grafana")
_LAYOUTS: Final = ("default-format", "quota-labels", "old-rule-order", "lower-case", "strimzi", "name-only")
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LONGEST_S: Final = 366 * 86_400
_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_MATCHER: Final = r'[a-zA-Z_][a-zA-Z0-9_]*(?:=~|!~|!=|=)"(?:[^"\\\n]|\\.)*"'
_SELECTOR: Final = re.compile(rf"{_MATCHER}(?:,{_MATCHER})*")


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesArguments(ClusterArguments):
    """The command line of ``rules``."""

    current: str | None
    state: str
    trusted_ref: str | None
    fail_on: str
    layout: str
    broker_label: str
    selector: str | None
    near: float
    pending: int
    unused: int
    interval: int
    out: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rules``."""
    options.add_connection_path_argument(parser, also=", and the limits")
    parser.add_argument(
        "--state",
        default="manifests",
        metavar="STATE",
        help="take the limits of the manifests, current (the cluster, or the snapshot of --current), planned, or the file of a "
        "snapshot [default: %(default)s]",
    )
    series = options.section(parser, "Series")
    series.add_argument(
        "--layout",
        choices=_LAYOUTS,
        default=_LAYOUTS[0],
        metavar="LAYOUT",
        help="read the names of this exporter. default-format: jmx_exporter without rules, Amazon MSK. quota-labels: its example "
        "kafka-2_0_0, koperator. old-rule-order: its rules in an older order. lower-case: Confluent. strimzi: Strimzi's "
        "metrics-reporter. name-only: jmx_exporter's example kafka-kraft-3_0_0 [default: %(default)s]",
    )
    series.add_argument(
        "--broker-label",
        type=_label,
        default="instance",
        metavar="LABEL",
        help="take the broker from this label of the exporter's series [default: %(default)s]",
    )
    series.add_argument(
        "--selector",
        type=_selector,
        metavar="MATCHERS",
        help='read only series with these labels, such as \'job="kafka",env="prod"\' [default: all series]',
    )
    alerts = options.section(parser, "Alerts")
    alerts.add_argument(
        "--near",
        type=share,
        default=0.8,
        metavar="SHARE",
        help="alert above this share of a limit, such as 0.8 or 80%% [default: 80%%]",
    )
    alerts.add_argument(
        "--for",
        dest="pending",
        type=_seconds,
        default=300,
        metavar="TIME",
        help="alert once it lasts this long, such as 30s or 10m [default: 5m]",
    )
    alerts.add_argument(
        "--unused",
        type=_seconds,
        default=7 * 86_400,
        metavar="TIME",
        help="alert on limits without use for this long [default: 7d]",
    )
    alerts.add_argument(
        "--interval", type=_seconds, default=60, metavar="TIME", help="evaluate the rules at this interval [default: 1m]"
    )
    options.add_fail_on_option(parser)
    options.add_trusted_ref_option(parser)
    options.add_cluster_options(parser)
    options.add_current_option(parser, "read this snapshot instead of the live cluster")
    options.add_output_options(parser, formats=_FORMATS, out=True)


def parse(namespace: argparse.Namespace) -> RulesArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(RulesArguments, namespace)


def run(args: RulesArguments) -> int:
    """Read the limits and print the rules."""
    from reconciler.features.monitoring.limits import quota_rules
    from reconciler.files import write_whole
    from reconciler.model import Severity
    from reconciler.workflows import Sources, Where, check_names

    files = output.parse_out(args.out, formats=_FORMATS)
    check_names([args.state])
    where = Where(
        paths=tuple(args.paths),
        cluster=args.cluster,
        access=options.access(args, current=args.current),
        trusted_ref=args.trusted_ref,
        fail_on=Severity(args.fail_on),
    )
    sources = Sources(where)
    try:
        quotas = quota_rules(sources, args.state, name=args.cluster)
    except ManifestError as error:
        if error.findings:
            output.print_findings(args, error.findings, to_stdout=False)
        raise
    output.print_findings(args, sources.findings, to_stdout=False)
    rules = _rules(args, quotas)
    for name, path in files:
        write_whole(path, _pieces(name, quotas, rules))
    try:
        sys.stdout.writelines(_pieces(args.format, quotas, rules))
        sys.stdout.flush()
    except OSError as error:
        raise OutputError(f"cannot print the result: {error.strerror}") from error
    if not output.is_quiet():
        _print_notes(rules)
    return exit_codes.DONE


def _rules(args: RulesArguments, quotas: QuotaRules) -> RuleFile:
    from reconciler.features.monitoring.prometheus_rules import RuleOptions, render_prometheus_rules
    from reconciler.features.monitoring.rule_layouts import RuleLayout

    if args.near <= 0:
        raise UsageError("--near is a share above 0, such as 80%")
    chosen = RuleOptions(
        layout=RuleLayout(args.layout),
        broker_label=args.broker_label,
        selector=args.selector or "",
        near=args.near,
        pending_s=args.pending,
        unused_s=args.unused,
        interval_s=args.interval,
    )
    return render_prometheus_rules(quotas, chosen)


def _pieces(name: str, quotas: QuotaRules, rules: RuleFile) -> Iterator[str]:
    from reconciler.features.monitoring.grafana_dashboard import render_grafana_dashboard

    yield render_grafana_dashboard(quotas.cluster) if name == "grafana" else rules.text


def _print_notes(rules: RuleFile) -> None:
    from reconciler.text import list_entities

    if not rules.limits:
        output.tell("note: the rules have no limit to compare, so they only record rates")
    for reason, entities in rules.left_out.items():
        output.tell(f"note: the rules leave out {list_entities(entities, 3)}: {reason}")


def _label(text: str) -> str:
    if not _LABEL.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a label such as broker_id")
    return text


def _selector(text: str) -> str:
    if not text.isprintable() or not _SELECTOR.fullmatch(text):
        raise argparse.ArgumentTypeError(f'{text!r} is not a list of matchers such as job="kafka",env="prod"')
    return text


def _seconds(text: str) -> int:
    number, unit = text[:-1], text[-1:]
    seconds = int(number) * _UNITS[unit] if number.isascii() and number.isdigit() and len(number) < 10 and unit in _UNITS else 0
    if not 0 < seconds <= _LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 30s, 5m, 1h or 7d")
    return seconds
