"""A backtest whose rows of verdicts go to a folder, an address or a table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from reconciler.errors import UsageError
from reconciler.features.verdict_tables.verdict_rows import VerdictStore, parse_verdict_store
from reconciler.model import BacktestReport, display_name, escaped
from reconciler.ports import Progress
from reconciler.workflows import (
    BacktestOptions,
    Proposal,
    apply_rules,
    backtest_request,
    failing_rows,
    limited_kinds,
    run_backtest,
    traffic_of,
)


def backtest_to_table(proposal: Proposal, options: BacktestOptions, progress: Progress) -> BacktestReport:
    """Judge as ``workflows.run_backtest``, and write all rows to ``options.verdict_rows``: on Spark those of large traffic.

    Raises ``UsageError`` for a place that has files or other rows, or that this traffic cannot be written to, and as
    ``run_backtest``.
    """
    from reconciler.traffic import require_arrow

    require_arrow()
    assert options.verdict_rows is not None
    store = parse_verdict_store(options.verdict_rows)
    store.require_free()
    report = _judged_on_spark(proposal, options, store, progress) if options.prometheus is None else None
    if report is not None:
        return apply_rules(report, replace(proposal, notes=(*proposal.notes, *_rows_note(report, str(store)))))
    _require_folder(store)
    report = run_backtest(proposal, replace(options, verdict_rows=None), progress=progress)
    progress.step(f"writing {len(report.verdicts):,} rows of verdicts to {store}")
    store.write(report.verdicts)
    return report


def _require_folder(store: VerdictStore) -> None:
    if store.needs_spark:
        raise UsageError(
            f"--out parquet={escaped(str(store))}: the command itself judges samples of metrics, violation logs and folders of "
            "compact, and writes rows of verdicts to its machine only. Name a folder there"
        )


def _judged_on_spark(
    proposal: Proposal, options: BacktestOptions, store: VerdictStore, progress: Progress
) -> BacktestReport | None:
    """Return the report with the worst rows, all of which Spark wrote; ``None``: this process judges and writes."""
    from reconciler.traffic import Reading, spark_with_progress

    question, traffic = backtest_request(proposal, options), traffic_of(proposal, options)
    if not traffic.has_rows or not (store.needs_spark or not traffic.stays_here(options.spark)):
        return None
    from reconciler.features.verdict_tables.sharded import ShardedBacktest, open_sharded

    reading = Reading(
        log_timezone=options.log_timezone,
        kinds=limited_kinds(proposal),
        by_seconds=not question.exact,
        topics=proposal.topics,
    )
    wanted = traffic.session(options.spark)
    with spark_with_progress(wanted, progress) as spark:
        store.require_free_on(spark)
        progress.step(f"reading {traffic.words}")
        sharded = open_sharded(traffic, spark, reading, max_unreadable=options.max_unreadable)
        if sharded is None:
            return None
        run = ShardedBacktest(sharded, question, failing_rows(proposal))
        with contextlib.closing(sharded), contextlib.closing(run):
            progress.step("judging")
            report = run.report()
            progress.step(f"writing {run.rows:,} rows of verdicts to {store}")
            store.write_frame(run.verdicts)
        return replace(report, provenance=replace(report.provenance, spark=wanted.where))


def _rows_note(report: BacktestReport, where: str) -> Iterator[str]:
    counts = report.counts
    if counts.rows > len(report.verdicts):
        yield (
            f"This report lists the {len(report.verdicts):,} worst of {counts.rows:,} rows (a quota group on a broker). All rows "
            f"are in {display_name(where)}. Counts are of all rows"
        )
