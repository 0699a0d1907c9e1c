"""``kafka-quotas simulate``: recorded traffic with other brokers, more traffic or other quotas."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import typed
from reconciler.cli.entity_options import default_in_text_warnings
from reconciler.cli.quota_settings import add_set_option, parse_settings
from reconciler.cli.replay import ReplayArguments, add_replay_options, read_current, read_intent, replay_options
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.model import BacktestReport
    from reconciler.workflows import SimulationRequest

FORMATS: Final = ("text", "json", "markdown", "html")
_FACTOR: Final = re.compile(r"x(\d{1,6}(?:\.\d{1,6})?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateArguments(ReplayArguments):
    """The command line of ``simulate``. ``traffic`` has the sources, and a factor such as ``x1.5``."""

    brokers: int | None
    without_broker: tuple[int, ...]
    leaders: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``simulate``."""
    parser.add_argument(
        "paths",
        nargs="*",
        default=[],
        metavar="PATH",
        help="files or folders with manifests [default: ., with --set, --current or --bootstrap-server none]",
    )
    parser.add_argument("--details", action="store_true", help="print also each broker, all clients, and every assumption")
    changes = options.section(parser, "Changes")
    changes.add_argument(
        "--brokers", type=_count, metavar="N", help="divide every client's traffic among N brokers in equal parts"
    )
    changes.add_argument(
        "--without-broker",
        type=_broker,
        action="append",
        default=[],
        metavar="ID",
        help="move the traffic of this broker to the others in equal parts (repeatable)",
    )
    changes.add_argument(
        "--leaders",
        metavar="FILE",
        help="move traffic with the leaders of partitions: the JSON of kafka-reassign-partitions (of --generate, both parts), or "
        "of Cruise Control (a proposal with verbose=true, or kafka_cluster_state)",
    )
    add_set_option(parser, without="Without PATH, it changes the quotas of --current or --bootstrap-server")
    options.section(parser, "Traffic").add_argument(
        "--traffic",
        action="append",
        default=[],
        metavar="SOURCE|xFACTOR",
        help="take this history, in any form that backtest reads (repeatable for paths), or multiply it, such as x1.5 "
        "[default: spec.traffic of the Cluster manifest, x1]",
    )
    add_replay_options(parser)
    options.add_fail_on_option(parser)
    options.add_trusted_ref_option(parser)
    options.add_cluster_options(parser)
    options.add_current_option(
        parser, "take today's quotas from this snapshot [default: the cluster of --bootstrap-server, else the manifests]"
    )
    options.add_output_options(parser, formats=FORMATS, out=True)


def parse(namespace: argparse.Namespace) -> SimulateArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(SimulateArguments, namespace)


def run(args: SimulateArguments) -> int:
    """Simulate and print; 1 when a rule of the policy fails or a finding is at or above ``--fail-on``."""
    from reconciler.model import ClusterSpec, Severity
    from reconciler.workflows import run_simulation

    limit, files = Severity(args.fail_on), output.parse_out(args.out, formats=FORMATS)
    options.check_one_state(args, args.current)
    sources, request = _request(args)
    request.require_change()
    for warning in default_in_text_warnings(request.settings):
        output.tell(f"warning: {warning}")
    has_quotas = bool(request.settings or args.current or args.bootstrap_server or args.zookeeper)
    intent = read_intent(args, files, needed=not has_quotas)
    spec, trusted = (ClusterSpec(), None) if intent is None else (intent.spec, intent.trusted)
    chosen = replay_options(args, sources, spec, trusted)
    current = read_current(args, intent)
    report = run_simulation(request, intent, current, chosen, progress=output.StderrProgress(args, every_s=30.0))
    _print(args, report, files)
    stopped = report.refused or any(finding.severity.at_least(limit) for finding in report.findings)
    return exit_codes.NOT_DONE if stopped else exit_codes.DONE


def _print(args: SimulateArguments, report: BacktestReport, files: Sequence[tuple[str, Path]]) -> None:
    from reconciler.documents import backtest_to_json
    from reconciler.files import write_whole
    from reconciler.render import simulation_lines

    for name, path in files:
        write_whole(path, [_as(name, report, details=args.details)])
    output.print_result(
        args,
        document=lambda: backtest_to_json(report),
        lines=lambda: simulation_lines(report, details=args.details),
        other=lambda name: _as(name, report, details=args.details),
    )


def _as(name: str, report: BacktestReport, *, details: bool) -> str:
    """A report in one of ``FORMATS``; the text is without colour."""
    from reconciler.documents import backtest_to_json
    from reconciler.formats import document_text
    from reconciler.render import plain, simulation_html, simulation_lines, simulation_markdown

    match name:
        case "json":
            return document_text(backtest_to_json(report))
        case "markdown":
            return simulation_markdown(report)
        case "html":
            return simulation_html(report)
    return plain(simulation_lines(report, details=details))


def _request(args: SimulateArguments) -> tuple[list[str], SimulationRequest]:
    """The sources of traffic, and what differs from it. Raises ``UsageError``."""
    from reconciler.workflows import SimulationRequest

    factors = [match for text in args.traffic if (match := _FACTOR.fullmatch(text))]
    if len(factors) > 1:
        raise UsageError(f"--traffic has two factors, {factors[0].group()} and {factors[1].group()}. Give one of them")
    sources = [text for text in args.traffic if not _FACTOR.fullmatch(text)]
    request = SimulationRequest(
        brokers=args.brokers,
        without=args.without_broker,
        leaders=Path(args.leaders) if args.leaders else None,
        factor=float(factors[0][1]) if factors else 1.0,
        settings=parse_settings(args.settings),
    )
    return sources, request


def _count(text: str) -> int:
    return _whole(text, "a number of brokers, such as 12", least=1)


def _broker(text: str) -> int:
    return _whole(text, "the id of a broker, such as 3", least=0)


def _whole(text: str, what: str, *, least: int) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return int(text)
