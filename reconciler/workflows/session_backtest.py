"""Backtest on the Spark session of a Python program: its frame in place of files, and tables beside the report."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from reconciler.errors import UsageError
from reconciler.model import BacktestReport
from reconciler.workflows.backtest import BacktestOptions, Proposal, apply_rules, backtest_request, failing_rows
from reconciler.workflows.traffic_inputs import read_trusted_mapping

if TYPE_CHECKING:
    from reconciler.traffic import SessionFrames


def backtest_in_session(
    spark: Any, traffic: object, proposal: Proposal, options: BacktestOptions, *, in_shards: bool
) -> tuple[BacktestReport, SessionFrames]:
    """Judge ``traffic``, a frame of Spark or the name of a table, with Spark as the program has configured it.

    ``in_shards``: workers judge quota groups in shards and keep their rows: no list of clients comes to the driver.
    Raises ``UsageError`` for arguments that cannot work, ``TrafficError`` for traffic that cannot be used, and
    ``MissingDependencyError`` without the packages.
    """
    from reconciler.traffic import (
        Backtest,
        SessionFrames,
        ShardedBacktest,
        frame_of,
        frames_of_report,
        open_frame,
        open_sharded_frame,
        raise_as_sentences,
    )

    question = backtest_request(proposal, options)
    mapping = read_trusted_mapping(options.mapping, proposal.trusted)
    if mapping is not None and mapping.metrics:
        raise UsageError("The mapping has metrics of a server. For a DataFrame, write spec.columns")
    with raise_as_sentences("this session"), contextlib.ExitStack() as stack:
        frame = frame_of(spark, traffic)
        if not in_shards:
            recorded = open_frame(frame, mapping=mapping, max_unreadable=options.max_unreadable)
            _require_requests(options, of_requests=recorded.of_requests)
            run = Backtest(recorded, question)
            report = apply_rules(run.report(), proposal)
            return report, frames_of_report(report, recorded, run, (question.broker.window, question.broker.controller_window))
        sharded = open_sharded_frame(frame, mapping=mapping, max_unreadable=options.max_unreadable)
        stack.callback(sharded.close)
        _require_requests(options, of_requests=sharded.has_topics)
        shards = ShardedBacktest(sharded, question, failing_rows(proposal), advises=True)
        stack.callback(shards.close)
        report = apply_rules(shards.report(), proposal)
        # On the way without an error, Spark keeps the rows until the caller closes them.
        kept = stack.pop_all()
        return report, SessionFrames(
            verdicts=shards.verdicts, seconds=shards.seconds, recommendations=shards.recommendations, close=kept.close
        )


def _require_requests(options: BacktestOptions, *, of_requests: bool) -> None:
    if options.exact and not of_requests:
        raise UsageError("exact needs single requests, and this traffic has none: leave exact out")
