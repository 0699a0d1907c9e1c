"""``kafka-quotas rules``: Prometheus recording and alert rules, and a Grafana dashboard, of the limits of one cluster."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from dataclasses import dataclass
from typing import Final

from reconciler.cli import option_groups, output
from reconciler.cli.declaration import group, option
from reconciler.cli.results import OutFile, Result
from reconciler.errors import UsageError

_FORMATS: Final = ("prometheus", "grafana")
_MATCHER: Final = r'[a-zA-Z_][a-zA-Z0-9_]*(?:=~|!~|!=|=)"(?:[^"\\\n]|\\.)*"'
_SELECTOR: Final = re.compile(rf"{_MATCHER}(?:,{_MATCHER})*")


def _selector(text: str) -> str:
    if not text.isprintable() or not _SELECTOR.fullmatch(text):
        raise ArgumentTypeError(f'{text!r} is not a list of matchers such as job="kafka",env="prod"')
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesArguments:
    """The command line of ``rules``."""

    paths: tuple[str, ...] = option_groups.connection_paths(", and the limits")
    selector: str | None = option(
        "--selector",
        section="Series",
        type=_selector,
        metavar="MATCHERS",
        help='read only series with these labels, such as \'job="kafka",env="prod"\' [default: all series]',
    )
    connection: option_groups.ConnectionOptions = group(option_groups.ConnectionOptions)
    current: str | None = option_groups.CURRENT
    format: str = option_groups.format_option(_FORMATS)
    out: tuple[OutFile, ...] = option_groups.out_option(_FORMATS)


def run(args: RulesArguments) -> Result:
    """Read the limits and make the rules."""
    from reconciler.features.monitoring.grafana_dashboard import render_grafana_dashboard
    from reconciler.features.monitoring.prometheus_rules import QuotaRules, render_prometheus_rules
    from reconciler.text import list_entities
    from reconciler.workflows import Sources, Where

    connection = args.connection
    sources = Sources(Where(paths=args.paths, cluster=connection.cluster, access=connection.access(args.current)))
    view = sources.view("manifests")
    if view.caveats.callback is not None:
        raise UsageError(f"Rules need limits that are known: {view.caveats.callback}")
    cluster = connection.cluster or view.cluster.name
    if not cluster:
        raise UsageError("The rules need the name of the cluster. Pass --cluster NAME with a folder of manifests")
    quotas = QuotaRules(cluster=cluster, entities=view.entities, owners=sources.owners(), selector=args.selector or "")
    rules = render_prometheus_rules(quotas)
    notes = [] if rules.limits else ["note: the rules have no limit to compare, so they only record rates"]
    if rules.left_out:
        reason = "rules compare rates of users and client-ids, and these quotas have none"
        notes.append(f"note: the rules leave out {list_entities(rules.left_out)}: {reason}")
    return Result(
        beside=sources.findings,
        forms={"prometheus": lambda: rules.text, "grafana": lambda: render_grafana_dashboard(cluster)},
        notes=() if output.is_quiet() else tuple(notes),
    )
