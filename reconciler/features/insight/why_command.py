"""``kafka-quotas why``: why a client was throttled at a time, and what to do about it."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from reconciler.cli import entity_options, exit_codes, option_groups, output
from reconciler.cli.declaration import argument, group, option
from reconciler.cli.results import Result
from reconciler.cli.traffic_options import TRAFFIC, ReadingOptions, moment
from reconciler.errors import UsageError
from reconciler.text import shown

if TYPE_CHECKING:
    from reconciler.features.insight.past_quotas import IncidentRequest


_AROUND: Final = datetime.timedelta(hours=1)


def _moment(text: str) -> datetime.datetime:
    """A time, or one of the last 24 hours when only the time of day is given, which is UTC without an offset."""
    try:
        clock = datetime.time.fromisoformat(text)
    except ValueError:
        return moment(text)
    now = datetime.datetime.now(datetime.UTC)
    at = datetime.datetime.combine(now.date(), clock, tzinfo=clock.tzinfo or datetime.UTC)
    return (at if at <= now else at - datetime.timedelta(days=1)).astimezone(datetime.UTC)


_TIME: Final[Mapping[str, Any]] = {"type": _moment, "metavar": "TIME"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyArguments:
    """The command line of ``why``."""

    paths: tuple[str, ...] = argument(
        "PATH",
        nargs="*",
        default=[],
        help="manifests in git, for the quotas of that time and the commits that set them [default: none]",
    )
    at: datetime.datetime | None = option(
        "--at", **_TIME, help='explain the incident at or nearest to this time, such as "14:03" or 2026-11-22T14:03:00Z'
    )
    since: datetime.datetime | None = option(
        "--since", **_TIME, help="look from this time on [default: 1 h before --at or --until]"
    )
    until: datetime.datetime | None = option("--until", **_TIME, help="look up to this time [default: 1 h after --at, else now]")
    entity: entity_options.EntityOptions = group(entity_options.EntityOptions)
    traffic: tuple[str, ...] = option(
        "--traffic",
        **TRAFFIC,
        help="look at this traffic: request logs as [BROKER=]PATH, Parquet, or a folder of compact. Or samples of "
        "prometheus+http(s)://HOST[:PORT][/PATH], or exporters' pages of this moment, BROKER=metrics+http://HOST:PORT/metrics. "
        "Repeatable for one kind [default: spec.traffic of the Cluster manifest]",
    )
    audit: tuple[str, ...] = option(
        "--audit",
        section="Traffic",
        metavar="FILE",
        help="take the applied commits from this file of apply --audit or run --audit (repeatable)",
    )
    run: str | None = option(
        "--run",
        metavar="FILE",
        help="instead of an incident, compare what the backtest predicted of each change in this report of apply --backtest with "
        "the traffic since",
    )
    reading: ReadingOptions = group(ReadingOptions)
    connection: option_groups.ConnectionOptions = group(option_groups.ConnectionOptions)
    current: str | None = option_groups.current("take quotas beside the manifests from this snapshot instead of the live cluster")
    detailed_exitcode: bool = option_groups.detailed_exitcode(
        "exit 2 when the client was throttled, or by computation would have been, or a prediction was too low"
    )
    format: str = option_groups.format_option()


def run(args: WhyArguments) -> Result:
    """Explain; exit 1 when it is not known whether the client was throttled."""
    if args.run:
        return _compare(args)
    from reconciler.features.insight.explain import explain_incident
    from reconciler.features.insight.incident import INCIDENT, IncidentAnswer
    from reconciler.features.insight.rate_sources import recorded_pages
    from reconciler.features.insight.why_view import incident_lines
    from reconciler.features.prometheus import is_page

    with contextlib.ExitStack() as stack:
        if any(map(is_page, args.traffic)):
            # The page shows this moment: it is read before the times are.
            folder = stack.enter_context(recorded_pages(args.traffic, http_config=args.reading.http_config))
            args = replace(args, traffic=(folder,))
        progress = stack.enter_context(output.LiveProgress())
        report = explain_incident(_request(args), progress=progress)
    code = exit_codes.DONE
    if report.answer is IncidentAnswer.UNKNOWN:
        code = exit_codes.NOT_DONE
    elif args.detailed_exitcode and report.answer is not IncidentAnswer.CLEAR:
        code = exit_codes.DIFFERENCES
    return Result(exit=code, view=lambda: incident_lines(report), document=lambda: INCIDENT.write(report))


def _compare(args: WhyArguments) -> Result:
    """Predictions beside observations; exit 1 when no quota group can be compared."""
    from reconciler.features.insight.predictions import (
        RUN_COMPARISON,
        Agreement,
        compare_run,
        comparison_lines,
        read_runs_with_predictions,
        run_proposal,
    )
    from reconciler.features.insight.recorded_rates import span_options

    (report,) = read_runs_with_predictions((args.run or "",))
    named = entity_options.entity_of(args.entity, may_be_empty=("client-id",))
    if args.at is not None or named is not None:
        raise UsageError("--run compares all groups of a run, so it takes neither --at nor --name")
    since, until = args.since or report.facts.ended, args.until or datetime.datetime.now(datetime.UTC)
    if since is None:
        raise UsageError(f"{shown(args.run or '')} has no time of its end. Pass --since TIME")
    if until <= since:
        raise UsageError("--until is not later than the end of the run")
    with output.LiveProgress() as progress:
        proposal = run_proposal(report, args.paths, args.connection.cluster, args.connection.access(args.current))
        options = span_options(proposal.spec, None, since, until, traffic=args.traffic, reading=args.reading)
        comparison = compare_run(report, proposal, options, since=since, until=until, progress=progress)
    code = exit_codes.DONE
    if comparison.count(Agreement.UNKNOWN) == len(comparison.groups):
        code = exit_codes.NOT_DONE
    elif args.detailed_exitcode and comparison.count(Agreement.WORSE):
        code = exit_codes.DIFFERENCES
    return Result(exit=code, view=lambda: comparison_lines(comparison), document=lambda: RUN_COMPARISON.write(comparison))


def _request(args: WhyArguments) -> IncidentRequest:
    from reconciler.features.insight.past_quotas import IncidentRequest
    from reconciler.features.insight.value_history import read_runs
    from reconciler.workflows import require_client

    if args.entity.entity_defaults:
        raise UsageError("--defaults names a class of clients: name the client that was throttled with --name")
    client = entity_options.entity_of(args.entity, may_be_empty=("client-id",))
    if client is None:
        raise UsageError("name a client: --name user=NAME --name client-id=NAME, or --name ip=ADDRESS")
    at, since, until = _times(args)
    return IncidentRequest(
        client=require_client(client),
        at=at,
        since=since,
        until=until,
        paths=args.paths,
        cluster=args.connection.cluster,
        access=args.connection.access(args.current),
        runs=read_runs(args.audit)[0],
        traffic=args.traffic,
        reading=args.reading,
    )


def _times(args: WhyArguments) -> tuple[datetime.datetime | None, datetime.datetime, datetime.datetime]:
    """``--at``, ``--since`` and ``--until``, UTC."""
    at, now = args.at, datetime.datetime.now(datetime.UTC)
    if at is None and args.since is None and args.until is None:
        raise UsageError('No time was given: pass --at TIME, such as --at "14:03", or --since TIME')
    end = args.until or min(now, at + _AROUND if at is not None else now)
    begin = args.since or (at or end) - _AROUND
    if at is not None and not begin <= at <= end:
        raise UsageError("--at is not between --since and --until, or lies in the future")
    return at, begin, end
