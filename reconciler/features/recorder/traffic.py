"""Files of the recorder as traffic: sums of seconds, and the topics of mutations."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from reconciler.features.recorder.files import OPEN, is_recorder_file, read_header, recorder_files_in, recorder_rows
from reconciler.model import Message, compose, escaped, flag_part
from reconciler.text import shown_part
from reconciler.traffic import DELTA, Reading, Source, SourceFile, Traffic, require_one

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from reconciler.traffic import SparkRows

_BYTES_A_TASK: Final = 4_000_000
"""As stored, compressed."""


class RecorderTraffic(Traffic):
    """Files of the recorder in brokers."""

    source: ClassVar[Source] = Source.RECORDER
    takes_time: ClassVar[bool] = True

    @staticmethod
    def claims(path: Path) -> bool:
        """A file of the recorder, or a folder that has one."""
        if path.is_dir():
            return any(map(is_recorder_file, path.rglob("quota-recorder-*")))
        return is_recorder_file(path) and path.exists()

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Traffic:
        """As ``Traffic.of``."""
        return cls(parquet=tuple(dict.fromkeys(file for argument in arguments for file in recorder_files_in(Path(argument)))))

    @property
    def semantics(self) -> str:
        """As ``Traffic.semantics``."""
        return DELTA

    def look(self, log_timezone: str) -> None:
        """As ``Traffic.look``: first lines are the recorder's, and of one cluster."""
        del log_timezone
        headers = {file: read_header(Path(file)) for file in self.parquet}
        require_one({header.cluster: escaped(file) for file, header in headers.items() if header and header.cluster is not None})

    def source_file(self, file: str) -> SourceFile | None:
        """As ``Traffic.source_file``: known by its first line, complete or still open."""
        header = read_header(Path(file))
        return None if header is None else SourceFile.of_beginning(Path(file), b"recorder\n" + header.line)

    def batches(self, reading: Reading) -> Iterator[pa.RecordBatch]:
        """As ``Traffic.batches``."""
        return recorder_rows(self.parquet, with_file="file" in reading.also, between=self.between)

    def rows_on(self, spark: SparkSession, reading: Reading) -> SparkRows[pa.RecordBatch]:
        """As ``Traffic.rows_on``."""
        from reconciler.traffic import kept_rows

        sizes = [Path(file).stat().st_size for file in self.parquet]
        read = functools.partial(recorder_rows, with_file="file" in reading.also, between=self.between)
        return kept_rows(spark, self.parquet, sizes, read, a_task=_BYTES_A_TASK)

    def notes(self) -> Iterator[Message]:
        """As ``Traffic.notes``, of files that are not closed."""
        for file in self.parquet:
            if file.endswith(OPEN):
                yield compose(
                    "{file} was not closed: its broker still writes to it, or ended without warning. Its last seconds, as many "
                    "as {setting}, can be missing",
                    file=shown_part(Path(file).name),
                    setting=flag_part("quota.recorder.flush.seconds"),
                )
