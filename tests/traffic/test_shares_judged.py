"""Shares of a capacity in a backtest: limits are those of the manifests, and who comes lowers those of the others."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from reconciler.formats.shapes import load_schema
from tests.builders import user
from tests.support.command import invoke
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.recorded_parquet import Flow, write_traffic

KEY = "producer_byte_rate"
RATES = {"alice": 1500, "bob": 1300, "carol": 400}
"""Bytes a second of each user, steadily."""
CAPACITY = 4000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    flows = [Flow(user=name, amount=rate, begin_s=0.5, end_s=300.5) for name, rate in RATES.items()]
    write_traffic(tmp_path / "history.parquet", flows)
    (tmp_path / "live.json").write_text(snapshot({user(name): {KEY: 1_000_000.0} for name in RATES}))
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas" / "prod.yaml").write_text(cluster(backtest={"history": {"hours": 0}}))
    return tmp_path


def judged(folder: Path, **shares: float) -> dict[str, tuple[float, str]]:
    """By user, the limit and the verdict."""
    entries = [({"user": name}, {KEY: {"shares": count, "of": CAPACITY}}) for name, count in shares.items()]
    (folder / "quotas" / "quotas.yaml").write_text(quotas(*entries))
    done = invoke("backtest", "quotas", "--current", "live.json", "--traffic", "history.parquet", "--format", "json", cwd=folder)
    assert done.code == 0, done.err
    document = done.json()
    jsonschema.Draft202012Validator(load_schema("backtest")).validate(document)
    return {row["bucket"]["user"]: (row["limit_after"], row["verdict"]) for row in document["verdicts"]}


def test_who_has_too_few_shares_is_throttled(folder: Path) -> None:
    assert judged(folder, alice=2, bob=1, carol=1) == {
        "alice": (2000, "clear"),
        "bob": (1000, "throttled"),
        "carol": (1000, "clear"),
    }


def test_another_entity_with_shares_throttles_those_near_their_limits(folder: Path) -> None:
    """Six shares instead of four: alice has 1,333, below what she sends, and carol 666."""
    verdicts = judged(folder, alice=2, bob=1, carol=1, dave=2)
    assert verdicts == {"alice": (1333, "throttled"), "bob": (666, "throttled"), "carol": (666, "clear")}
