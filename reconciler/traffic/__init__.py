"""The backtest on Spark: recorded traffic against quotas. The only package that imports pyspark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.traffic.backtest import Backtest, Question
    from reconciler.traffic.job_progress import spark_with_progress
    from reconciler.traffic.judging.quota_tables import BrokerRule
    from reconciler.traffic.kernels.sampled_rate import Era, Window
    from reconciler.traffic.kinds import BYTES, KEY_OF_KIND, Kind
    from reconciler.traffic.opening import Traffic, find_traffic, look_first, open_traffic, read_batches, read_rows
    from reconciler.traffic.recorded import Source
    from reconciler.traffic.requirements import require_arrow, require_packages
    from reconciler.traffic.seconds.compact import Compaction, SourceFile
    from reconciler.traffic.seconds.folder import Segment, SegmentFolder
    from reconciler.traffic.session import SessionOptions
    from reconciler.traffic.sources.log_evidence import CLUSTER
    from reconciler.traffic.sources.log_files import split_argument
    from reconciler.traffic.sources.mapping import TrafficMapping, parse_mapping, read_mapping

__all__ = [
    "BYTES",
    "CLUSTER",
    "KEY_OF_KIND",
    "Backtest",
    "BrokerRule",
    "Compaction",
    "Era",
    "Kind",
    "Question",
    "Segment",
    "SegmentFolder",
    "SessionOptions",
    "Source",
    "SourceFile",
    "Traffic",
    "TrafficMapping",
    "Window",
    "find_traffic",
    "look_first",
    "open_traffic",
    "parse_mapping",
    "read_batches",
    "read_mapping",
    "read_rows",
    "require_arrow",
    "require_packages",
    "spark_with_progress",
    "split_argument",
]

__getattr__ = lazy_face(__name__)
