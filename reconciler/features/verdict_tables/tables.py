"""A backtest whose rows of verdicts go to a folder, an address or a table."""

from __future__ import annotations

from dataclasses import replace

from reconciler.features.verdict_tables.verdict_rows import parse_verdict_store, verdict_table
from reconciler.model import BacktestReport
from reconciler.ports import Progress
from reconciler.workflows import BacktestOptions, Proposal, run_backtest


def backtest_to_table(proposal: Proposal, options: BacktestOptions, progress: Progress) -> BacktestReport:
    """Judge as ``workflows.run_backtest``, and write all rows to ``options.verdict_rows``.

    Spark writes to addresses and tables, and judges large traffic in the same session.
    Raises ``UsageError`` for a place that has files or other rows, and as ``run_backtest``.
    """
    from reconciler.traffic import SessionOptions, require_arrow, spark_with_progress

    require_arrow()
    assert options.verdict_rows is not None
    store, judging = parse_verdict_store(options.verdict_rows), replace(options, verdict_rows=None)
    store.require_free()
    if store.folder is not None:
        report = run_backtest(proposal, judging, progress=progress)
        progress.step(f"writing {len(report.verdicts):,} rows of verdicts to {store}")
        store.write(verdict_table(report.verdicts))
        return report
    with spark_with_progress(options.spark or SessionOptions(), progress) as spark:
        store.require_free_on(spark)
        report = run_backtest(proposal, judging, progress=progress)
        progress.step(f"writing {len(report.verdicts):,} rows of verdicts to {store}")
        store.write_on(spark, verdict_table(report.verdicts))
    return report
