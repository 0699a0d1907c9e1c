"""``kafka-quotas why``: why a client was throttled at a time, and what to do about it."""

from __future__ import annotations

import contextlib
import datetime
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from reconciler.cli import entity_options, exit_codes, option_groups, output
from reconciler.cli.declaration import argument, group, option
from reconciler.cli.results import Result
from reconciler.cli.traffic_options import TRAFFIC, ReadingOptions
from reconciler.errors import UsageError
from reconciler.text import shown

if TYPE_CHECKING:
    from reconciler.features.insight.evidence import IncidentRequest


_AROUND: Final = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyArguments:
    """The command line of ``why``."""

    paths: tuple[str, ...] = argument(
        "PATH",
        nargs="*",
        default=[],
        help="manifests in git, for the quotas of that time and the commits that set them [default: none]",
    )
    at: str | None = option(
        "--at", metavar="TIME", help='explain the incident at or nearest to this time, such as "14:03" or 2026-11-22T14:03:00Z'
    )
    since: str | None = option("--since", metavar="TIME", help="look from this time on [default: 1 h before --at or --until]")
    until: str | None = option("--until", metavar="TIME", help="look up to this time [default: 1 h after --at, else now]")
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
    now = datetime.datetime.now(datetime.UTC)
    since = report.facts.ended if args.since is None else parse_time("--since", args.since, now=now)
    if since is None:
        raise UsageError(f"{shown(args.run or '')} has no time of its end. Pass --since TIME")
    until = now if args.until is None else parse_time("--until", args.until, now=now)
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
    from reconciler.features.insight.evidence import IncidentRequest
    from reconciler.features.insight.past_quotas import QuotaSources
    from reconciler.features.insight.value_history import read_runs
    from reconciler.workflows import require_client

    if args.entity.entity_defaults:
        raise UsageError("--defaults names a class of clients: name the client that was throttled with --name")
    client = entity_options.entity_of(args.entity, may_be_empty=("client-id",))
    if client is None:
        raise UsageError("name a client: --name user=NAME --name client-id=NAME, or --name ip=ADDRESS")
    at, since, until = _times(args, now=datetime.datetime.now(datetime.UTC))
    runs, _ = read_runs(args.audit)
    access = args.connection.access(args.current)
    return IncidentRequest(
        client=require_client(client)[0],
        at=at,
        since=since,
        until=until,
        quotas=QuotaSources(paths=args.paths, cluster=args.connection.cluster, access=access, runs=runs),
        traffic=args.traffic,
        reading=args.reading,
    )


def _times(
    args: WhyArguments, *, now: datetime.datetime
) -> tuple[datetime.datetime | None, datetime.datetime, datetime.datetime]:
    """``--at``, ``--since`` and ``--until``, UTC."""
    at, since, until = (
        None if text is None else parse_time(option, text, now=now)
        for option, text in (("--at", args.at), ("--since", args.since), ("--until", args.until))
    )
    if at is None and since is None and until is None:
        raise UsageError('No time was given: pass --at TIME, such as --at "14:03", or --since TIME')
    end = until or min(now, at + _AROUND if at is not None else now)
    begin = since or (at or end) - _AROUND
    if at is not None and not begin <= at <= end:
        raise UsageError("--at is not between --since and --until, or lies in the future")
    return at, begin, end


def parse_time(option: str, text: str, *, now: datetime.datetime) -> datetime.datetime:
    """A time, or one of the last 24 hours when only the time of day is given; UTC without an offset. Raises ``UsageError``."""
    with contextlib.suppress(ValueError):
        clock = datetime.time.fromisoformat(text)
        moment = datetime.datetime.combine(now.date(), clock, tzinfo=clock.tzinfo or datetime.UTC)
        return (moment if moment <= now else moment - datetime.timedelta(days=1)).astimezone(datetime.UTC)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        msg = f"{option} takes a time such as 14:03 or 2026-11-22T14:03:00Z, not {shown(text)}"
        raise UsageError(msg) from None
    return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).astimezone(datetime.UTC)
