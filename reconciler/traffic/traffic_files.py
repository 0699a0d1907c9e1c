"""Finds the sources that ``--traffic`` names: request or violation logs, Parquet, mapped or recorder files, per-second totals."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.errors import TrafficError, UsageError
from reconciler.logs import log_event
from reconciler.traffic.seconds.folder import SegmentFolder
from reconciler.traffic.sources.datasets import Dataset, is_dataset, parse_dataset, require_one_kind
from reconciler.traffic.sources.log_documents import MARKER
from reconciler.traffic.sources.log_files import BrokerFiles, find_logs, has_text
from reconciler.traffic.sources.mapping import TrafficMapping
from reconciler.traffic.sources.normal_form import (
    DELTA,
    EVENT,
    GAUGE,
    MEAN,
)
from reconciler.traffic.sources.parquet_parts import (
    BYTES_A_ROW,
    Between,
    bytes_when_read,
    footers_of,
    has_one_value,
    may_have_value,
)
from reconciler.traffic.sources.recorder_files import is_recorder_file, recorder_files_in
from reconciler.traffic.sources.violation_log import VIOLATION
from reconciler.traffic.traffic_source import Source

if TYPE_CHECKING:
    from reconciler.traffic.session import SessionOptions

_log: Final = logging.getLogger(__name__)
_SMALL_BYTES: Final = 64 * 1024 * 1024
"""Below this, compiling costs Spark more than it gains, and starting it more than judging in this process."""
_SMALL_PARQUET: Final = 10_000_000
"""Rows: half of the processor time of Spark, in 1.2 to 1.9 GB by seconds and 1.7 to 2.2 GB at every request."""
_SMALL_GAUGES: Final = 200_000_000
"""Rows: a gauge counts once, and is not sorted with all others. A day of 12,000 series every 15 s has a third of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Files found, of one kind."""

    source: Source
    logs: tuple[BrokerFiles, ...] = ()
    parquet: tuple[str, ...] = ()
    cells: Path | None = None
    mapping: TrafficMapping | None = None
    between: Between | None = None
    """Of Parquet in the normal form, of the recorder and of datasets, only the rows of this time."""
    datasets: tuple[Dataset, ...] = ()
    """What only Spark can find; ``source`` is right when ``open_traffic`` has listed them."""

    @property
    def files(self) -> tuple[str, ...]:
        """By name; of per-second totals there are none. Datasets have the names of their arguments."""
        return tuple(map(str, self.datasets)) or tuple(file for log in self.logs for file in log.files) or self.parquet

    def only(self, files: Collection[Path]) -> Traffic:
        """The part of it that is in these files."""
        names = {str(file) for file in files}
        logs = (replace(log, files=tuple(file for file in log.files if file in names)) for log in self.logs)
        parquet = tuple(file for file in self.parquet if file in names)
        return replace(self, logs=tuple(log for log in logs if log.files), parquet=parquet)

    @property
    def small(self) -> bool:
        """Whether Spark does better to compile little."""
        of_files = self.source is not Source.CELLS and not self.datasets
        return of_files and sum(Path(file).stat().st_size for file in self.files) < _SMALL_BYTES

    def stays_here(self, options: SessionOptions, *, compacting: bool = False) -> bool:
        """Whether it is read in this process, without Spark: small traffic, where no master or server was asked for.

        Per-second totals decide that themselves, when it is known which of them are needed.
        """
        if self.source is Source.CELLS or self.datasets:
            return False
        if self.source is Source.VIOLATIONS:
            return True
        read_bytes = bytes_when_read(self.files)
        most_bytes = self._most_bytes_here(compacting=compacting)
        small = read_bytes <= most_bytes
        why = ("the traffic is small" if small else "the traffic is large") if options.unasked else "Spark was asked for"
        here = options.unasked and small
        engine = "this process" if here else "Spark"
        sizes = {"read_bytes": read_bytes, "most_bytes": most_bytes}
        log_event(_log, "engine chosen", level=logging.INFO, engine=engine, where=options.where, why=why, **sizes)
        return here

    def _most_bytes_here(self, *, compacting: bool) -> int:
        if self.source is not Source.NORMAL_FORM:
            return _SMALL_BYTES
        if all(has_one_value(footer, "semantics", GAUGE) for _, footer in footers_of(self.parquet)):
            return _SMALL_GAUGES * BYTES_A_ROW
        return _SMALL_BYTES if compacting else _SMALL_PARQUET * BYTES_A_ROW

    @property
    def files_of_metrics(self) -> tuple[str, ...]:
        """Parquet in the normal form that has gauges or means, as far as its statistics show."""
        if self.source is not Source.NORMAL_FORM or self.datasets:
            return ()
        return tuple(file for file, footer in footers_of(self.parquet) if may_have_value(footer, "semantics", (GAUGE, MEAN)))

    @property
    def of_requests(self) -> bool:
        """Whether it may show single requests."""
        has_sums = self.source in (Source.CELLS, Source.RECORDER, Source.VIOLATIONS)
        return not has_sums and (self.mapping is None or self.mapping.semantics == EVENT)

    @property
    def has_second_sums(self) -> bool:
        """Whether its charged rows are sums of whole seconds."""
        return self.source is Source.RECORDER or (self.mapping is not None and self.mapping.semantics == DELTA)

    @property
    def has_rows(self) -> bool:
        """Whether it is rows, of which Spark's workers can read shares."""
        return self.source not in (Source.VIOLATIONS, Source.CELLS)

    @property
    def needs_little_jvm(self) -> bool:
        """Whether Java does not look at single rows, or at few."""
        return self.source in (Source.NORMAL_FORM, Source.CELLS) and not self.datasets


def find_traffic(arguments: Sequence[str], mapping: TrafficMapping | None = None, *, between: Between | None = None) -> Traffic:
    """The source that the arguments name. A ``mapping`` decides their format.

    ``between``: which rows of Parquet or of the recorder count.

    Raises ``TrafficError`` for a path without traffic, ``UsageError`` for no arguments, one file of two brokers, and a mixture.
    """
    traffic = replace(_find(arguments, mapping), between=between)
    if between is not None and not traffic.datasets and traffic.source not in (Source.NORMAL_FORM, Source.RECORDER):
        raise UsageError(
            "--since and --until need Parquet in the canonical traffic schema, files of the recorder, an address or a table. "
            "Leave them out, or give the address: file:///PATH"
        )
    log_event(
        _log, "traffic found", level=logging.INFO, source=traffic.source.value, files=len(traffic.files), first=traffic.files[:1]
    )
    return traffic


def _find(arguments: Sequence[str], mapping: TrafficMapping | None) -> Traffic:
    datasets = tuple(dataset for argument in arguments if (dataset := parse_dataset(argument)) is not None)
    require_one_kind(datasets, [argument for argument in arguments if not is_dataset(argument)])
    if datasets:
        return Traffic(source=Source.NORMAL_FORM if mapping is None else Source.MAPPED, datasets=datasets, mapping=mapping)
    if mapping is not None:
        if mapping.metrics:
            raise UsageError("The mapping has metrics of a server. For files, write spec.columns")
        files = tuple(file for argument in arguments for file in _mapped_of(Path(argument), mapping))
        return Traffic(source=Source.MAPPED, parquet=files, mapping=mapping)
    kinds = {_kind_of(Path(argument)) for argument in arguments}
    if len(kinds) > 1:
        names = " and ".join(sorted(kind.value for kind in kinds))
        raise UsageError(f"--traffic names {names}: give one kind at a time, or compact them into one folder")
    if kinds == {Source.CELLS}:
        if len(arguments) > 1:
            raise UsageError("--traffic names several folders of per-second totals: compact everything into one")
        return Traffic(source=Source.CELLS, cells=Path(arguments[0]))
    if kinds == {Source.NORMAL_FORM}:
        return Traffic(
            source=Source.NORMAL_FORM, parquet=tuple(file for argument in arguments for file in _parquet_of(Path(argument)))
        )
    if kinds == {Source.RECORDER}:
        files_of_recorders = dict.fromkeys(file for argument in arguments for file in recorder_files_in(Path(argument)))
        return Traffic(source=Source.RECORDER, parquet=tuple(files_of_recorders))
    return _logs_of(arguments)


def _logs_of(arguments: Sequence[str]) -> Traffic:
    """Request logs; where no file has a line of a request, and some file has one of a violation, violation logs."""
    logs = find_logs(arguments)
    if not any(has_text(file, MARKER) for log in logs for file in log.files):
        broker_logs = find_logs(arguments, named=False)
        if any(has_text(file, VIOLATION) for log in broker_logs for file in log.files):
            return Traffic(source=Source.VIOLATIONS, logs=broker_logs)
    return Traffic(source=Source.LOGS, logs=logs)


def _kind_of(path: Path) -> Source:
    if path.is_dir():
        if SegmentFolder(path).exists():
            return Source.CELLS
        if any(map(is_recorder_file, path.rglob("quota-recorder-*"))):
            return Source.RECORDER
        return Source.NORMAL_FORM if any(path.rglob("*.parquet")) else Source.LOGS
    if is_recorder_file(path) and path.exists():
        return Source.RECORDER
    return Source.NORMAL_FORM if path.suffix == ".parquet" and path.exists() else Source.LOGS


def _mapped_of(path: Path, mapping: TrafficMapping) -> tuple[str, ...]:
    if path.is_file():
        return (str(path.resolve()),)
    if not path.is_dir():
        raise TrafficError(f"recorded traffic {path}: no such file or folder")
    endings = (".parquet",) if mapping.form == "parquet" else (".csv", ".csv.gz", ".parquet")
    files = sorted(file for file in path.rglob("*") if file.name.endswith(endings))
    shown = [file for file in files if not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)]
    if not shown:
        raise TrafficError(f"recorded traffic {path}: the folder has no file whose name ends in {' or '.join(endings)}")
    return tuple(str(file.resolve()) for file in shown)


def _parquet_of(path: Path) -> tuple[str, ...]:
    files = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    shown = [file for file in files if not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)]
    if not shown:
        raise TrafficError(f"recorded traffic {path}: its Parquet files are all hidden, as of a job that did not finish")
    return tuple(str(file.resolve()) for file in shown)
