"""``backtest`` on a folder of gauges, as a reader of a metrics server stores them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from reconciler.formats.shapes import load_schema
from tests.support.command import Done, invoke, run
from tests.support.gauge_pages import gauge_clients, random_rates, write_hour
from tests.support.gauge_parquet import START_S, Client, Shape, steady, write_gauges
from tests.support.manifests import cluster, quotas

MIB = 2**20
PROGRAM = str(Path(sys.executable).parent / "kafka-quotas")
NAMES = ("over", "near", "quiet", "burst", "moved", "gone")
LIMITS = quotas(*(({"user": name}, {"producer_byte_rate": "10MiB"}) for name in NAMES))
CLIENTS: dict[Client, Shape] = {
    ("over", "app", 1): steady(MIB, peaks={100: 13 * MIB, 101: 11 * MIB}),
    ("over", "app", 2): steady(MIB),
    ("near", "app", 1): steady(MIB, peaks={7: 9 * MIB}),
    ("quiet", "app", 1): steady(MIB, peaks={7: 2 * MIB}),
    ("burst", "app", 1): steady(MIB, peaks={5000: 11 * MIB}),
    # Two series of one client, as after a move from the user's quota to that of a pair: each 6 MiB/s at one moment.
    ("moved", None, 1): steady(0, peaks={300: 6 * MIB}),
    ("moved", "app", 1): steady(0, peaks={300: 6 * MIB, 301: 7 * MIB}),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas" / "cluster.yaml").write_text(cluster())
    (tmp_path / "quotas" / "quotas.yaml").write_text(LIMITS)
    write_gauges(tmp_path / "gauges", CLIENTS)
    return tmp_path


def backtest(folder: Path, *more: str, env: dict[str, str] | None = None) -> Done:
    return (run if env else invoke)("backtest", "quotas", "--traffic", "gauges", *more, cwd=folder, env=env)


def test_each_verdict_has_its_samples_and_nothing_is_clear(folder: Path) -> None:
    done = backtest(folder, "--format", "json")
    assert (done.code, done.err) == (0, "")
    document = done.json()
    jsonschema.Draft202012Validator(load_schema("backtest")).validate(document)
    rows = {(one["bucket"]["user"], one["broker"]): one for one in document["verdicts"]}
    assert {
        place: (row["verdict"], row["metrics"]["samples_over"], row["metrics"]["samples"]) for place, row in rows.items()
    } == {
        ("over", 1): ("throttled", 2, 5760),
        ("over", 2): ("inconclusive", 0, 5760),
        ("near", 1): ("possible", 0, 5760),
        ("quiet", 1): ("inconclusive", 0, 5760),
        ("burst", 1): ("possible", 1, 5760),
        ("moved", 1): ("possible", 1, 5760),
    }
    assert rows["moved", 1]["metrics"]["highest"] == 12 * MIB, "series of one moment are added up"
    assert rows["over", 1]["metrics"]["moments"] == pytest.approx(11 / 15)
    low, high = rows["burst", 1]["metrics"]["share_over"]
    assert low < 1 / 5760 < high < 0.001
    assert rows["quiet", 1]["metrics"]["share_over"] == [0, pytest.approx(3 / 5760)]
    # 2 MiB/s x 1.9, 50 % for a history of a day, and two brokers of which one may be lost.
    assert rows["quiet", 1]["recommended"] == 11.5 * MIB
    assert rows["quiet", 1]["safe"] is None
    assert "highest sample 2 MiB/s x 1.9 for 15 s gauges, and 50 %" in rows["quiet", 1]["recommended_reason"]
    (observations,) = document["provenance"]["observations"]
    assert observations == {"semantics": "gauge", "rows": 7 * 5760, "series": 7, "every_s": 15, "throttled_then": 0}


def test_the_text_fits_a_terminal_and_names_censored_samples(folder: Path) -> None:
    write_gauges(folder / "gauges", CLIENTS, censored=frozenset(range(200)))
    done = backtest(folder, "--details", env={"COLUMNS": "80"})
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(line.strip() for line in lines)
    assert "1 of 5,760 samples above the limit (0.017 %, 95 % interval" in text
    assert "Warning: quotas throttled clients in 1,400 of 40,320 gauges every 15 s (3.5 %)" in text
    assert "so it is a lower bound" in text
    assert "a quota throttled these clients in 3.5 % of them" in text
    assert "the first 11 s read low" in text


def test_a_quota_of_a_user_cannot_be_split_by_what_its_own_series_show(folder: Path) -> None:
    pairs = quotas(({"user": "moved", "client-id": "app"}, {"producer_byte_rate": "1MiB"}))
    (folder / "quotas" / "quotas.yaml").write_text(pairs)
    rows = backtest(folder, "--format", "json").json()["verdicts"]
    moved = {one["bucket"].get("client-id"): one for one in rows if one["bucket"].get("user") == "moved"}
    assert moved["app"]["verdict"] == "throttled"
    assert (moved[None]["verdict"], moved[None]["undecided"]) == ("inconclusive", True)
    assert moved[None]["reason"] == (
        "the metrics name the quota group as it was, and the quotas of that time are not known: give --current, and it judges "
        "groups that no change splits"
    )


def test_rules_see_what_the_history_could_not_judge(folder: Path) -> None:
    rule = {"verdicts": ["inconclusive"], "match": {"user": "gone"}}
    (folder / "quotas" / "cluster.yaml").write_text(cluster(backtest={"fail": [rule]}))
    done = backtest(folder)
    assert done.code == 1, done.out
    assert "user=gone: producer_byte_rate limits no recorded traffic" in done.out


@pytest.mark.large
def test_a_hundred_million_samples_are_judged_in_bounded_memory(tmp_path: Path) -> None:
    """A day and a half of 12,000 series every 15 s. Every fourth hour has no totals in its footer."""
    clients, rng = gauge_clients(6, 2_000), np.random.default_rng(3)
    (tmp_path / "pages").mkdir()
    above = np.zeros(len(clients), dtype=np.int64)
    for hour in range(35):
        rates = random_rates(rng, np.full(len(clients), 2e6))
        above += (rates > 1_500_000).sum(axis=1)
        file = tmp_path / "pages" / f"{hour:02}.parquet"
        write_hour(file, clients, rates, start_s=START_S + 3600 * hour, step_s=15, has_totals=hour % 4 != 0)
    everyone = {"user": {"default": True}, "client-id": {"default": True}}
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas" / "quotas.yaml").write_text(cluster() + "---\n" + quotas((everyone, {"producer_byte_rate": 1_500_000})))
    command = [PROGRAM, "backtest", "quotas", "--traffic", "pages", "--out", "json=report.json", "--quiet"]

    with (tmp_path / "out").open("wb") as out:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=out, stderr=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)

    assert process.returncode == 0, (tmp_path / "out").read_text()[-2000:]
    document = json.loads((tmp_path / "report.json").read_text())
    assert [(one["semantics"], one["rows"]) for one in document["provenance"]["observations"]] == [("gauge", 100_800_000)]
    found = {(row["broker"], row["bucket"]["user"], row["bucket"]["client-id"]): row["metrics"] for row in document["verdicts"]}
    wanted = {(client.broker, client.user, client.client_id): int(count) for client, count in zip(clients, above, strict=True)}
    assert {place: metrics["samples_over"] for place, metrics in found.items()} == wanted
    assert {metrics["samples"] for metrics in found.values()} == {35 * 240}
    assert usage.ru_maxrss / 1024 < 1024, "MB"
