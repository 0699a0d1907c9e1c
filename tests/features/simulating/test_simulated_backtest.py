"""``backtest`` of moved or multiplied traffic as a user runs it: the situation, the answer, and the same judgement."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.documents import BACKTEST
from tests.builders import user
from tests.support import manifests
from tests.support.command import Command, Done, invoke
from tests.support.recorded_parquet import SCHEMA
from tests.support.schemas import valid

START = datetime.datetime(2026, 11, 20, tzinfo=datetime.UTC)
SECONDS = 600
Request = tuple[int, int, str, int]
"""Second, broker, user and bytes."""


def write(folder: Path, requests: Iterable[Request], *, semantics: str = "event") -> None:
    folder.mkdir()
    rows = [
        {
            "ts": START + datetime.timedelta(seconds=second, milliseconds=500), "interval_ms": 0, "broker": broker, "user": user,
            "client_id": "app", "kind": "produce", "amount": size, "semantics": semantics,
        }
        for second, broker, user, size in requests
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), folder / "t.parquet")


def recorded() -> list[Request]:
    chance = random.Random(7)
    rates = {"alice": 900, "bob": 300, "carol": 3000}
    return [
        (second, broker, user, 2 * int(chance.expovariate(2 / rate)) + 2)
        for second in range(SECONDS)
        for user, rate in rates.items()
        for broker in (1, 2, 3)
        if chance.random() < 0.8
    ]


QUOTAS: dict[str, float] = {"alice": 1700, "bob": 1000, "carol": 2000}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "history", recorded())
    (tmp_path / "now.json").write_text(
        manifests.snapshot({user(name): {"producer_byte_rate": rate} for name, rate in QUOTAS.items()})
    )
    return tmp_path


def simulate(folder: Path, *arguments: str, history: str = "history") -> Done:
    return invoke("backtest", "--current", "now.json", "--traffic", history, *arguments, cwd=folder)


def document(done: Done) -> dict[str, Any]:
    assert done.code == 0, done.err
    data: dict[str, Any] = done.json()
    valid(data, "backtest")
    assert BACKTEST.write(BACKTEST.build(data))["situation"] == data["situation"]
    return data


def verdicts(data: dict[str, Any], names: Sequence[str]) -> dict[tuple[str, int], list[Any]]:
    return {(row["bucket"]["user"], row["broker"]): [row[name] for name in names] for row in data["verdicts"]}


JUDGED = ("limit_after", "verdict", "active_seconds", "seconds_certain", "seconds_over", "seconds_possible", "longest_s", "first")


def judged_as_written(folder: Path, requests: Iterable[Request]) -> dict[str, Any]:
    """A backtest of another history, in which every quota stays and is judged."""
    write(folder / "other", requests)
    judged = {"history": {"hours": 0}, "fail": [{"verdicts": ["throttled"], "unchanged": True}]}
    entries = (({"user": name}, {"producer_byte_rate": rate}) for name, rate in QUOTAS.items())
    text = f"{manifests.cluster(prune='never', backtest=judged)}---\n{manifests.quotas(*entries)}"
    (folder / "c.yaml").write_text(text, encoding="utf-8")
    arguments = ("c.yaml", "--current", "now.json", "--traffic", "other", "--format", "json")
    data: dict[str, Any] = invoke("backtest", *arguments, cwd=folder).json()
    return data


@pytest.mark.parametrize("compacted", [False, True], ids=["requests", "totals"])
def test_a_lost_broker_is_judged_as_the_history_in_which_its_traffic_is_on_the_others(folder: Path, compacted: bool) -> None:
    if compacted:
        assert invoke("compact", "--traffic", "history", "--folder", "cells", cwd=folder).code == 0
    data = document(simulate(folder, "--without-broker", "3", "--format", "json", history="cells" if compacted else "history"))
    # Sizes are even, so that each half is a whole number.
    moved = [
        (second, target, user, size if broker != 3 else size // 2)
        for second, broker, user, size in recorded()
        for target in ((broker,) if broker != 3 else (1, 2))
    ]
    expected = judged_as_written(folder, moved)
    assert verdicts(data, JUDGED).keys() == verdicts(expected, JUDGED).keys()
    for place, row in verdicts(expected, (*JUDGED, "peak")).items():
        got = verdicts(data, (*JUDGED, "peak"))[place]
        assert got[-1] == pytest.approx(row[-1], rel=1e-3)
        # A byte of each second can be on the one or the other side.
        assert got[1] == row[1] or {got[1], row[1]} <= {"clear", "inconclusive"}
        assert got[2] == row[2]
        assert all(abs(a - b) <= 3 for a, b in zip(got[3:6], row[3:6], strict=True))
    assert data["situation"] == "Without broker 3"


def test_the_answer_names_the_situation_and_notes_say_how_it_is_simulated(folder: Path) -> None:
    done = simulate(folder, "--without-broker", "3", "--details")
    assert done.code == 0
    text = " ".join(done.out.split())
    assert text.startswith(
        "Backtest: Without broker 3: no limit of a recorded client changes. 2 quota groups are over a limit that stays."
    )
    assert "each client's traffic of broker 3 moves to brokers 1 and 2 in equal parts, 50 % each" in text


def test_the_answer_names_groups_of_which_whole_seconds_do_not_decide(folder: Path) -> None:
    # 1,600 B/s is below the limit of 1,700 B/s, and eleven seconds of it in a window of ten are above.
    write(folder / "steady", [(second, 1, "alice", 800) for second in range(SECONDS)])
    answer = "With 2 times the traffic: no limit of a recorded client changes. 1 quota group might be over a limit that stays."
    assert f"Backtest: {answer}\n" in simulate(folder, "--factor", "2", history="steady").out


def test_more_traffic_is_the_history_with_larger_requests(folder: Path) -> None:
    data = document(simulate(folder, "--factor", "1.5", "--format", "json"))
    expected = judged_as_written(folder, [(s, b, u, size * 3 // 2) for s, b, u, size in recorded()])
    names = ("active_seconds", "seconds_certain", "seconds_over", "seconds_possible", "peak")
    assert verdicts(data, names) == verdicts(expected, names)
    assert data["situation"] == "With 1.5 times the traffic"


def test_a_total_throttles_with_the_number_that_brokers_keep_until_the_next_apply(folder: Path) -> None:
    write(folder / "steady", [(second, broker, "alice", 1000) for second in range(SECONDS) for broker in (1, 2, 3)])
    total = manifests.quotas(({"user": "alice"}, {"producer_byte_rate": {"clusterTotal": "3900B"}}))
    (folder / "quotas.yaml").write_text(total, encoding="utf-8")
    lost = ("--without-broker", "3")
    report = document(invoke("backtest", "quotas.yaml", *lost, "--traffic", "steady", "--format", "json", cwd=folder))
    # 1,500 B/s on each of two brokers, 1,300 B/s allowed at once, and 1,950 B/s after the next apply.
    assert {(row["verdict"], row["limit_after"]) for row in report["verdicts"]} == {("throttled", 1300)}
    assert any("until the next apply divides it again" in note for note in report["notes"])


def test_a_hole_is_that_of_the_broker_whose_recording_has_it(folder: Path) -> None:
    quiet = range(100, 5_500)
    requests = [
        (second, broker, "alice", 100)
        for second in range(0, 7_200, 10)
        for broker in (1, 2, 3)
        if broker != 3 or second not in quiet
    ]
    write(folder / "holes", requests)

    text = " ".join(simulate(folder, "--without-broker", "3", "--details", history="holes").out.split())

    assert re.search(r"broker 3 has no lines for [^.]*\. Brokers that take over its traffic lack it for that time", text)


def test_nothing_but_the_history_is_needed_for_quotas_of_the_command_line(folder: Path) -> None:
    done = invoke("backtest", "--traffic", "history", "--factor", "2", "--set", "user:producer_byte_rate=1MiB", cwd=folder)
    assert done.code == 0, done.err
    assert "With 2 times the traffic: " in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--without-broker", "9"), 64, "--without-broker 9: the history has no such broker. Its brokers are 1, 2, 3"),
        (("--without-broker", "1", "--without-broker", "2", "--without-broker", "3"), 64, "names every broker of the history"),
        (("--without-broker", "-1"), 64, "'-1' is not the id of a broker"),
        (("--factor", "0"), 64, "'0' is not a factor: write a number above 0, and 1,000 at most"),
        (("--factor", "9999"), 64, "'9999' is not a factor: write a number above 0, and 1,000 at most"),
        (("--factor", "2", "--exact"), 64, "is judged by whole seconds: leave --exact out"),
        (("--factor", "2", "--requests", "r.jsonl"), 64, "leave --requests out"),
        (("--factor", "2", "--plots", "3"), 64, "leave --plots out"),
        (("--set", "user=a:producer_byte_rate=-1"), 64, "A limit is above 0"),
    ],
)
def test_bad_input_is_one_sentence(folder: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = simulate(folder, *arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert "kafka-quotas" in done.err
    assert "Traceback" not in done.err


def test_rates_of_metrics_can_be_multiplied_and_not_moved(folder: Path) -> None:
    write(folder / "gauges", recorded(), semantics="gauge")
    done = simulate(folder, "--without-broker", "3", history="gauges")
    assert done.code == 64
    assert "rates of single brokers at their own moments" in done.err
    data = document(simulate(folder, "--factor", "2", "--format", "json", history="gauges"))
    plain = document(simulate(folder, "--factor", "1.000000001", "--format", "json", history="gauges"))
    highest = [{place: row[0]["highest"] for place, row in verdicts(each, ["metrics"]).items()} for each in (data, plain)]
    assert {place: value / 2 for place, value in highest[0].items()} == highest[1]


@pytest.mark.spark
def test_spark_judges_a_simulation_as_this_process_does(folder: Path, warm_command: Command) -> None:
    asked = ("--current", "now.json", "--traffic", "history", "--without-broker", "3", "--factor", "1.2", "--format", "json")
    here = document(invoke("backtest", *asked, cwd=folder))
    there = document(warm_command("backtest", *asked, "--master", "local[2]", cwd=folder))
    # Parquet has no order across files, so an amount of a second may go to another broker by a byte.
    names = ("limit_after", "verdict", "active_seconds", "requests")
    assert verdicts(there, names) == verdicts(here, names)
    assert there["situation"] == here["situation"]
