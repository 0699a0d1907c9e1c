"""Backtest on the Spark session of a Python program: its frame in place of files, and tables beside the report."""

from __future__ import annotations

import contextlib
import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reconciler.errors import UsageError
from reconciler.model import BacktestReport, Severity
from reconciler.workflows.backtest import BacktestOptions, Proposal, apply_rules, backtest_request, failing_rows, proposal_of
from reconciler.workflows.connect import read_state, snapshot_reader
from reconciler.workflows.intent import intent_of, load_intent, with_lint
from reconciler.workflows.load import load_manifest_text, stop_on
from reconciler.workflows.traffic_inputs import read_trusted_mapping

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from reconciler.traffic import BacktestRequest, Between, SessionFrames, TrafficMapping

TEXT_NAME: Final = "manifest_text"
"""In place of a file name in findings about manifests that are in no file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """What to judge. Of ``paths`` and ``text`` exactly one is set. ``traffic``: a frame of Spark, or the name of a table."""

    traffic: object
    paths: tuple[str, ...] = ()
    text: str | None = None
    cluster: str | None = None
    current: str | None = None
    """A snapshot; ``None``: the current quotas are not known."""
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None
    mapping: Path | None = None
    exact: bool = False
    kafka_version: str | None = None
    max_unreadable: float = 0.01
    in_shards: bool = False
    """Workers judge quota groups in shards and keep their rows: no list of clients comes to the driver."""


def backtest_in_session(spark: Any, request: SessionRequest) -> tuple[BacktestReport, SessionFrames]:
    """Judge the traffic with Spark as the program has configured it.

    Raises ``ManifestError`` with all findings, ``UsageError`` for arguments that cannot work, ``TrafficError`` for traffic that
    cannot be used, and ``MissingDependencyError`` without the packages.
    """
    from reconciler.traffic import (
        Backtest,
        frame_of,
        frames_of_report,
        open_frame,
        raise_as_sentences,
        require_packages,
    )

    require_packages()
    between = _between(request)
    proposal = _proposal(request)
    options = BacktestOptions(traffic=(), kafka_version=request.kafka_version, exact=request.exact)
    question = backtest_request(proposal, options)
    mapping = read_trusted_mapping(request.mapping, None)
    if mapping is not None and mapping.metrics:
        raise UsageError("The mapping has metrics of a server. For a DataFrame, write spec.columns")
    with raise_as_sentences("this session"):
        frame = frame_of(spark, request.traffic)
        if request.in_shards:
            return _in_shards(frame, mapping, between, request, question, proposal)
        recorded = open_frame(frame, mapping=mapping, between=between, max_unreadable=request.max_unreadable)
        _require_requests(request, of_requests=recorded.of_requests)
        run = Backtest(recorded, question)
        report = apply_rules(run.report(), proposal)
        return report, frames_of_report(report, recorded, run, (question.broker.window, question.broker.controller_window))


def _require_requests(request: SessionRequest, *, of_requests: bool) -> None:
    if request.exact and not of_requests:
        raise UsageError("exact needs single requests, and this traffic has none: leave exact out")


def _in_shards(
    frame: DataFrame,
    mapping: TrafficMapping | None,
    between: Between | None,
    request: SessionRequest,
    question: BacktestRequest,
    proposal: Proposal,
) -> tuple[BacktestReport, SessionFrames]:
    from reconciler.traffic import SessionFrames, ShardedBacktest, open_sharded_frame

    with contextlib.ExitStack() as stack:
        sharded = open_sharded_frame(frame, mapping=mapping, between=between, max_unreadable=request.max_unreadable)
        stack.callback(sharded.close)
        _require_requests(request, of_requests=sharded.has_topics)
        run = ShardedBacktest(sharded, question, failing_rows(proposal), advises=True)
        stack.callback(run.close)
        report = apply_rules(run.report(), proposal)
        # On the way without an error, Spark keeps the rows until the caller closes them.
        kept = stack.pop_all()
        return report, SessionFrames(
            verdicts=run.verdicts, seconds=run.seconds, recommendations=run.recommendations, close=kept.close
        )


def _proposal(request: SessionRequest) -> Proposal:
    if (request.text is None) == (not request.paths):
        raise UsageError("Pass manifests or manifest_text, and not both")
    if request.text is None:
        intent = load_intent(request.paths, cluster=request.cluster)
    else:
        loaded = load_manifest_text(request.text, name=TEXT_NAME)
        stop_on(loaded.findings)
        intent = intent_of(loaded, None, (), cluster=request.cluster, fail_on=Severity.ERROR)
    current = None if request.current is None else read_state(intent.spec, snapshot_reader(request.current))
    return proposal_of(with_lint(intent), current)


def _between(request: SessionRequest) -> Between | None:
    from reconciler.traffic import Between

    since, until = request.since, request.until
    for name, at in (("since", since), ("until", until)):
        if at is not None and at.tzinfo is None:
            raise UsageError(f"{name} is a time without a time zone: add tzinfo=datetime.UTC")
    if since is not None and until is not None and until <= since:
        raise UsageError("The time between since and until is empty")
    return None if since is None and until is None else Between.of(since, until)
