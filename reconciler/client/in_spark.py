"""A backtest within a Spark session: in a notebook, or in a job of a platform."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from reconciler.documents import BACKTEST
from reconciler.errors import UsageError
from reconciler.formats import document_text
from reconciler.workflows import SessionRequest, backtest_in_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestFrames:
    """The result of ``backtest``. The DataFrames are on the session of the traffic.

    ``document``: the report, as ``kafka-quotas backtest --format json`` prints it. ``verdicts``: a row for each quota group on
    each broker (``VERDICTS_SCHEMA``). ``seconds``: a row for each second with traffic of a quota group on a broker
    (``SECONDS_SCHEMA``). Each action on it reads the traffic once more, so cache what you use twice. ``recommendations``: a row
    for each quota group with a recommended limit (``RECOMMENDATIONS_SCHEMA``). ``release``: what ``close`` calls.
    """

    document: Mapping[str, Any]
    verdicts: DataFrame
    seconds: DataFrame
    recommendations: DataFrame
    release: Callable[[], None]

    def close(self) -> None:
        """Let Spark forget what it keeps for the DataFrames of ``in_shards``. Safe to call twice."""
        self.release()

    def __enter__(self) -> Self:
        """Close at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """As ``close``."""
        self.close()

    @property
    def refused(self) -> bool:
        """Whether a rule of the Cluster manifest fails. The command would exit with 1."""
        return bool(self.document["summary"]["refused"])

    def to_json(self) -> str:
        """The report as text, with the bytes that the command prints."""
        return document_text(dict(self.document))


def backtest(  # noqa: PLR0913 - one call of a notebook, by keyword
    spark: SparkSession,
    *,
    traffic: DataFrame | str,
    manifests: str | Path | Sequence[str | Path] = (),
    manifest_text: str | None = None,
    cluster: str | None = None,
    current: str | Path | None = None,
    since: datetime.datetime | None = None,
    until: datetime.datetime | None = None,
    mapping: str | Path | None = None,
    exact: bool = False,
    kafka_version: str | None = None,
    max_unreadable: float = 0.01,
    in_shards: bool = False,
) -> BacktestFrames:
    """Replay recorded traffic against current and proposed quotas, on the session of the caller.

    The session keeps its settings, views, cached tables and jobs. Nothing is started, stopped or written. ``in_shards`` is for
    more clients than the driver has room for: workers judge them and keep the rows, and the document has the worst 1,000 rows.
    Spark then keeps totals and verdicts until ``close``.

    ``traffic``: a DataFrame in the canonical traffic schema (``TRAFFIC_SCHEMA``), or the name of a table. With ``mapping``, a
    file of kind TrafficMapping, it has other columns. Spark reads it several times: cache one that is expensive to compute.
    ``manifests``: paths of manifests, or in ``manifest_text`` the YAML itself. ``cluster`` names the cluster where there are
    several. ``current``: a snapshot that ``kafka-quotas export --snapshot`` wrote, to compare with. ``since`` and ``until``:
    rows after the one and up to the other count, as times with a time zone. All else is as the options of
    ``kafka-quotas backtest``.

    Raises ``ManifestError`` with its findings, and ``UsageError`` for arguments that cannot work. Raises ``TrafficError`` for
    traffic that cannot be used and for a job that fails. Raises ``FileAccessError`` for a snapshot that cannot be read, and
    ``MissingDependencyError`` without the packages of the extra ``traffic``.
    """
    if not 0 <= max_unreadable <= 1:
        raise UsageError(f"max_unreadable takes a share from 0 to 1, not {max_unreadable!r}")
    paths = (manifests,) if isinstance(manifests, str | Path) else tuple(manifests)
    request = SessionRequest(
        traffic=traffic,
        paths=tuple(map(str, paths)),
        text=manifest_text,
        cluster=cluster,
        current=None if current is None else str(current),
        since=since,
        until=until,
        mapping=None if mapping is None else Path(mapping),
        exact=exact,
        kafka_version=kafka_version,
        max_unreadable=max_unreadable,
        in_shards=in_shards,
    )
    report, frames = backtest_in_session(spark, request)
    return BacktestFrames(
        document=BACKTEST.write(report),
        verdicts=frames.verdicts,
        seconds=frames.seconds,
        recommendations=frames.recommendations,
        release=frames.close,
    )
