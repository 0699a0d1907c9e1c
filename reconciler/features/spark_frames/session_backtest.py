"""A backtest of a frame on the Spark session of its caller. Nothing of the session changes."""

from __future__ import annotations

from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from reconciler.errors import TrafficError, UsageError
from reconciler.model import BacktestReport, escaped
from reconciler.traffic import Backtest, Source, TrafficSource, open_rows, raise_as_sentences, require_usable, rows_of_frame
from reconciler.traffic import spark_reason as reason
from reconciler.workflows import BacktestOptions, Proposal, apply_rules, backtest_request

_FRAME: Final = "DataFrame"
"""The file of the report."""


def backtest_in_session(spark: Any, traffic: object, proposal: Proposal, options: BacktestOptions) -> BacktestReport:
    """Judge ``traffic``, a frame of Spark or the name of a table, with Spark as the program has configured it.

    Raises ``UsageError`` for arguments that cannot work, ``TrafficError`` for traffic that cannot be used, and
    ``MissingDependencyError`` without the packages.
    """
    question = backtest_request(proposal, options)
    with raise_as_sentences("this session"):
        recorded = _open_frame(_frame_of(spark, traffic))
        require_usable(recorded, options.max_unreadable)
        if options.exact and not recorded.of_requests:
            raise UsageError("exact needs single requests, and this traffic has none: leave exact out")
        return apply_rules(Backtest(recorded, question).report(), proposal)


def _frame_of(spark: SparkSession, traffic: object) -> DataFrame:
    """The frame itself, or the table of this name. Raises ``UsageError`` for anything else, ``TrafficError`` without a table."""
    if not isinstance(spark, SparkSession):
        raise UsageError(f"spark takes a SparkSession, not {type(spark).__name__}")
    if isinstance(traffic, str):
        try:
            return spark.read.table(traffic)
        except AnalysisException as error:
            raise TrafficError(f"recorded traffic {escaped(traffic)} cannot be read: {escaped(reason(str(error)))}") from None
    if not isinstance(traffic, DataFrame):
        raise UsageError(f"traffic takes a DataFrame of Spark or the name of a table, not {type(traffic).__name__}")
    if traffic.isStreaming:
        raise UsageError("traffic is a stream. Pass the table that the stream writes")
    return traffic


def _open_frame(frame: DataFrame) -> TrafficSource:
    """The rows of a frame, which Spark reads anew for each pass. Raises ``TrafficError`` for a missing or a wrong column."""
    return open_rows(rows_of_frame(frame, where=_FRAME), source=Source.NORMAL_FORM, files=(_FRAME,), has_sums=False)
