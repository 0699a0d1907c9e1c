"""``backtest --noise``: how far request times may be off in the throttle bands of ``--requests``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import manifests
from tests.support.command import Done, invoke
from tests.support.incident_log import Sender, write_log

SENDERS = (
    Sender(user="orders", client_id="checkout", size=7_000, every_s=0.31, begin_s=0, end_s=40),
    Sender(user="orders", client_id="batch", size=9_000, every_s=0.47, begin_s=0, end_s=40),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "quotas.yaml").write_text(manifests.quotas(({"user": "orders"}, {"producer_byte_rate": "30KB"})))
    write_log(tmp_path / "request.log", SENDERS, {"orders": 30_000.0})
    return tmp_path


def backtest(folder: Path, *options: str) -> Done:
    return invoke("backtest", "quotas.yaml", "--traffic", "1=request.log", *options, cwd=folder)


def bands(folder: Path, *options: str) -> list[tuple[int, int]]:
    done = backtest(folder, "--requests", "requests.jsonl", *options)
    assert done.code in (0, 1), done.err
    rows = map(json.loads, (folder / "requests.jsonl").read_text("utf-8").splitlines())
    return [(low, high) for low, high in (row["throttle_band"] for row in rows)]


def width(found: list[tuple[int, int]]) -> int:
    return sum(high - low for low, high in found)


def test_more_noise_widens_bands_and_none_leaves_points(folder: Path) -> None:
    exact, narrow, default, wide = (
        bands(folder, *options) for options in (("--noise", "0"), ("--noise", "2ms"), (), ("--noise", "40ms"))
    )

    assert any(high for _, high in exact)
    assert width(exact) == 0
    assert 0 < width(narrow) < width(default) < width(wide)
    assert bands(folder, "--noise", "10ms") == default


@pytest.mark.parametrize("text", ["-1", "1s", "2.5", "1001", "", "ms"])
def test_anything_but_milliseconds_is_refused(folder: Path, text: str) -> None:
    done = backtest(folder, "--requests", "requests.jsonl", f"--noise={text}")

    assert (done.code, done.out) == (64, "")
    assert "is not a number of milliseconds from 0 to 1000, such as 10ms" in done.err


def test_noise_without_bands_is_refused(folder: Path) -> None:
    done = backtest(folder, "--noise", "2ms")

    assert (done.code, done.out) == (64, "")
    assert "--noise is for --requests" in done.err
