"""The backtest: recorded traffic against quotas, on Spark or in this process.

One row goes one way. A source makes it a row of the canonical traffic schema, as Arrow batches (``traffic_files``). The charged
rows get the number of their client (``columns``), and with it the groups in which they are judged. One shuffle brings the rows of
a group together in the order of time (``shuffle``). The kernels judge the group (``judging``, ``kernels``), and the verdicts
become a report (``backtest``). ``LocalRows`` and ``SparkRows`` run the same functions in this process and on Spark's workers.
``Traffic.stays_here`` and ``StoredRows`` choose, and log why. A class for each kind of source opens it (``traffic_files``).

Glossary:

canonical traffic schema
    The columns of every row, whatever it was read from: ``sources.normal_form.ROWS``.
normal form
    Parquet files with the columns ``sources.normal_form.COLUMNS``, the published file format of recorded traffic.
status
    Why a row is charged or not (``sources.normal_form``). Only ``charged`` rows are judged, all others are counted.
charge time
    The moment at which a broker records a request for its quota. Microseconds since 1970, UTC.
records, overhead
    The two parts of a charged amount. A fetch quota cuts records only.
kind
    What is charged: produced or fetched bytes, thread time, partitions changed, connections.
series
    A client x API x broker: one client's requests of one kind on one broker. The client of connections is an address.
per-second totals
    What each series was charged in each second. ``compact`` writes them (``seconds``).
segment
    The per-second totals of one source file.
quota group
    Connections that share one quota; a ``BucketName`` in code and in JSON.
target
    A quota group of the proposed quotas on one broker: one row of the report.
group
    What is judged at once: the series of a quota group, under the quotas before and after if its members stay.
slot
    A series that changes its quota group is in two groups: the first one is slot 0, the second one slot 1.
side
    One of the two sets of quotas, before or after the change.
shuffle by group
    All rows of a group meet in one partition, in the order of their keys.
block
    Many rows as one binary value, which Spark moves without opening it.
partition
    A range of group numbers with about as many rows as any other; one task judges it.
key
    A group's number and a time in one integer, by which rows are sorted.
replay
    The judgement of every request, with Kafka's own sampled rate (``--exact``).
bounds
    The judgement of whole seconds: below and above which rates no order of the requests can have been.
certain, possible, clear
    What bounds prove: some request was throttled, one may have been, none was.
gauge
    A broker's own rate at a moment. It proves throttling and never its absence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.traffic.backtest import Backtest, recorded_coverage
    from reconciler.traffic.client_totals import (
        CLIENT_TOTALS,
        COUNTED,
        GAUGE_TOTALS,
        MINUTE_TOTALS,
        count_batch,
        count_charged,
        count_minutes,
        count_uncharged,
        gauges_of_rows,
        minutes_of,
        minutes_of_rows,
        statuses,
    )
    from reconciler.traffic.client_totals import FOLDS as CLIENT_FOLDS
    from reconciler.traffic.client_totals import NAMES as CLIENT_NAMES
    from reconciler.traffic.client_totals import SCHEMA as CLIENT_SCHEMA
    from reconciler.traffic.columns import (
        NAME_CODES,
        NEEDED,
        ChargedRows,
        GroupIndex,
        charged_rows,
        fold_by_code,
        number_codes,
        run_begins,
    )
    from reconciler.traffic.columns import client_seconds as sum_seconds
    from reconciler.traffic.judging.by_seconds import Grid
    from reconciler.traffic.judging.evidence import Evidence, Gauge, gauges_of
    from reconciler.traffic.judging.exact import limits_of
    from reconciler.traffic.judging.grouping import BrokerRule, Grouping, Series, Tables, Target, group_series, rows_of_groups
    from reconciler.traffic.judging.history_gaps import are_enough, doubt_of_history, hold_back, old_limit_reason
    from reconciler.traffic.judging.judged_quotas import rows_of_quotas
    from reconciler.traffic.judging.recommendations import SMALLEST, broker_loss_factor, margin_of, safe_limit
    from reconciler.traffic.judging.verdicts import bare_row, moment
    from reconciler.traffic.kernels.exact_totals import TIME_BITS, first_places
    from reconciler.traffic.kernels.exact_totals import group_of as group_of_key
    from reconciler.traffic.kernels.exact_totals import pack as key_of_time
    from reconciler.traffic.kernels.exact_totals import time_of as time_of_key
    from reconciler.traffic.kernels.sampled_rate import Doubles, Era, Integers, Window
    from reconciler.traffic.kernels.second_sums import ROUNDING, longest_throttle_ratio
    from reconciler.traffic.kinds import BYTES, KEY_OF_KIND, SAMPLED, Kind, Measure
    from reconciler.traffic.parquet_traffic import TOTALS_KEY
    from reconciler.traffic.request_traffic import RequestTraffic, TrafficSource
    from reconciler.traffic.seconds.days import DATE, DAY_COLUMNS, DAY_SCHEMA, REQUESTS, SOURCE, TIME, has_days
    from reconciler.traffic.seconds.folder import SERIES as SERIES_PART
    from reconciler.traffic.seconds.folder import TOTALS as TOTALS_PART
    from reconciler.traffic.seconds.folder import FileSummary, Segment, SegmentFolder, SourceFile, minutes_in, ranges_of
    from reconciler.traffic.session import spark_with_progress
    from reconciler.traffic.shuffle.block import pack_rows
    from reconciler.traffic.shuffle.on_spark import SparkRows, least_tasks, run_on_workers, split_work
    from reconciler.traffic.shuffle.rows import GroupWork, PartialSums, Pieces, Rows, Totals, add_up, tables_of
    from reconciler.traffic.sources.log_evidence import CLUSTER, COPY_OF, charge_known_topics, mark_copies, require_one
    from reconciler.traffic.sources.log_files import Dataset, local_path, parse_dataset, split_argument
    from reconciler.traffic.sources.normal_form import (
        CHARGED,
        DELTA,
        DUPLICATE,
        END_US,
        FILE,
        FIRST_US,
        IDENTITY,
        MOST_AMOUNT,
        RECORDED_THROTTLE,
        ROWS,
        SILENT,
        UNCHARGED,
        UNCLEAR_TIME,
        UNREADABLE,
        UNSTATED,
        are_known,
        charge_second_sums,
        integers,
        is_in_time,
        require_readable,
        rows_of,
        with_missing,
    )
    from reconciler.traffic.sources.parquet_parts import Between, Part, footer_of, parts_of, read_part
    from reconciler.traffic.spark_jobs import logged_stages
    from reconciler.traffic.spark_jobs import reason as spark_reason
    from reconciler.traffic.spark_setup import SessionOptions, read_spark_settings, require_arrow, require_packages
    from reconciler.traffic.spark_versions import collect_table
    from reconciler.traffic.traffic_files import (
        OpenFiles,
        Traffic,
        find_traffic,
        kept_rows,
        open_traffic,
        rows_for_workers,
        shown_files,
    )
    from reconciler.traffic.traffic_source import (
        GAP_FILES,
        BacktestRequest,
        BrokerModel,
        Facts,
        Reading,
        RecordedThrottle,
        Source,
    )

__getattr__ = lazy_face(__name__)
