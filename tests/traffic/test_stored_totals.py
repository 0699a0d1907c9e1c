"""Totals in the footers of stored samples: the same as those of the rows, and used only where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.prometheus.metric_layouts import MetricSeries
from reconciler.features.prometheus.sample_pages import SampledClients, SampleRows, SampleTotals, open_samples, sample_table
from reconciler.traffic.client_totals import CLIENT_TOTALS, GAUGE_TOTALS, MINUTE_TOTALS
from reconciler.traffic.kinds import Kind
from reconciler.traffic.parquet_traffic import stored_totals
from reconciler.traffic.shuffle.rows import LocalRows, Totals
from reconciler.traffic.sources.parquet_parts import footer_of, parts_of, read_part
from tests.support.command import invoke
from tests.support.gauge_pages import gauge_clients, random_rates, write_hour
from tests.support.hostile_names import NAMES
from tests.support.manifests import cluster, quotas

START_S = 1_763_424_000
WORKS: tuple[Totals[pa.RecordBatch], ...] = (CLIENT_TOTALS, GAUGE_TOTALS, MINUTE_TOTALS)
NAME = st.none() | NAMES.filter(lambda name: name.isprintable())
CLIENT = st.builds(
    MetricSeries,
    broker=st.integers(-3, 5),
    kind=st.sampled_from([kind for kind in Kind if kind is not Kind.CONNECTION]),
    user=NAME,
    client_id=NAME,
) | st.builds(
    MetricSeries, broker=st.integers(-3, 5), kind=st.just(Kind.CONNECTION), user=st.none(), client_id=st.none(), ip=st.just("::1")
)
ROW = st.tuples(
    st.integers(0, 2**40), st.integers(-1, 400_000), st.integers(0, 3), st.integers(0, 10**9), st.sampled_from([-1, 0, 1])
)


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@given(
    clients=st.lists(CLIENT, min_size=4, max_size=4, unique=True), rows=st.lists(ROW, min_size=1, max_size=60), run=st.booleans()
)
def test_totals_of_a_footer_are_those_of_its_rows(
    tmp_path_factory: pytest.TempPathFactory, clients: list[MetricSeries], rows: list[tuple[int, ...]], run: bool
) -> None:
    if run:
        rows = sorted((row for row in rows for _ in range(20)), key=lambda row: row[2])
    at, interval, client, amount, throttled = (np.asarray(column, dtype=np.int64) for column in zip(*rows, strict=True))
    samples = SampleRows(
        ts_us=START_S * 1_000_000 + at, interval_ms=interval, clients=client, amounts=amount, throttled=throttled
    )
    file = tmp_path_factory.mktemp("page") / "page.parquet"
    totals = SampleTotals()
    with open_samples(file) as written:
        for part in (samples, samples):
            written.write_table(sample_table(part, SampledClients(clients)))
            totals.add(part, SampledClients(clients))
        written.add_key_value_metadata(totals.metadata())

    stored = stored_totals(footer_of(str(file)))

    assert stored is not None
    parts = parts_of([str(file)])
    read = LocalRows(lambda columns: (batch for part in parts for batch in read_part(part, columns)))
    for work, table in zip(WORKS, stored, strict=True):
        assert sorted_rows(table) == sorted_rows(read.total(work)), work.name


def history(folder: Path, *, totals: tuple[bool, ...]) -> Path:
    """Three hours of which some have totals."""
    clients, rng = gauge_clients(2, 30), np.random.default_rng(5)
    folder.mkdir()
    for hour, has_totals in enumerate(totals):
        rates = random_rates(rng, np.full(len(clients), 2e6))
        file = folder / f"{hour}.parquet"
        write_hour(file, clients, rates, start_s=START_S + hour * 3600, step_s=15, has_totals=has_totals)
    return folder


def verdicts(folder: Path, traffic: str, *more: str) -> dict[str, Any]:
    manifests = folder / "quotas"
    if not manifests.exists():
        manifests.mkdir()
        (manifests / "cluster.yaml").write_text(cluster())
        everyone = {"user": {"default": True}, "client-id": {"default": True}}
        (manifests / "quotas.yaml").write_text(quotas((everyone, {"producer_byte_rate": 1_500_000})))
    done = invoke("backtest", "quotas", "--traffic", traffic, "--format", "json", *more, cwd=folder)
    assert done.code == 0, done.err
    document = done.json()
    return {name: document[name] for name in ("verdicts", "summary", "findings")} | {
        "observations": document["provenance"]["observations"], "coverage": document["provenance"]["coverage"],
    }  # fmt: skip


def test_a_report_does_not_depend_on_stored_totals(tmp_path: Path) -> None:
    ways = {"all": (True, True, True), "some": (True, False, True), "none": (False, False, False)}
    for name, totals in ways.items():
        history(tmp_path / name, totals=totals)

    reports = {name: verdicts(tmp_path, name) for name in ways}

    assert len(reports["all"]["verdicts"]) == 60
    assert reports["all"] == reports["none"] == reports["some"]


@pytest.mark.parametrize("text", [b"", b"!", b"AAAA"])
def test_totals_that_cannot_be_read_are_not_used(text: bytes, tmp_path: Path) -> None:
    file = history(tmp_path / "pages", totals=(True,)) / "0.parquet"
    table = pq.read_table(file)
    metadata = dict(footer_of(str(file)).metadata or {})
    key = next(key for key in metadata if key.endswith(b".gauges"))
    pq.write_table(table.replace_schema_metadata(metadata), file)
    assert stored_totals(footer_of(str(file))) is not None
    # A file with other rows than those of its totals, as after a copy of a part.
    pq.write_table(table.slice(1).replace_schema_metadata(metadata), tmp_path / "part.parquet")
    pq.write_table(table.replace_schema_metadata(metadata | {key: text}), file)

    assert stored_totals(footer_of(str(file))) is None
    assert stored_totals(footer_of(str(tmp_path / "part.parquet"))) is None
