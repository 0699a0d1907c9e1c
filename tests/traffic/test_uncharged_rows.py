"""Rows of known clients that cannot be charged: their quota groups are never clear, and get no value to write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Command, invoke
from tests.support.manifests import cluster, quotas
from tests.traffic.log_lines import line, produce_request

NIGHT = [f"2026-10-25 02:{minute:02}:{second:02},000" for minute in (10, 11) for second in range(60)]
MORNING = [f"2026-10-25 03:{minute:02}:00,000" for minute in range(30)]
LIMIT: dict[str, Any] = {"producer_byte_rate": "15KiB"}
SHORT = cluster(prune="never", backtest={"history": {"hours": 0}})
MANIFEST = quotas(*(({"user": user}, LIMIT) for user in ("alice", "bob", "carol", "dave"))) + f"---\n{SHORT}"


def night_log(folder: Path) -> None:
    """Alice sends 2 MB/s in the hour that is there twice, Carol little, Bob sends in the morning, and Dave in both."""
    sent = [(at, "alice", 2_000_000) for at in NIGHT] + [(at, "carol", 10) for at in NIGHT[:31]]
    sent += [(at, user, 100) for at in MORNING for user in ("bob", "dave")] + [(NIGHT[0], "dave", 10)]
    lines = [
        line(at=at, principal=f"User:{user}", request=produce_request(size), correlation_id=number)
        for number, (at, user, size) in enumerate(sorted(sent))
    ]
    (folder / "kafka-request.log").write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "quotas.yaml").write_text(MANIFEST, "utf-8")


def judged(command: Command, work: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """By user, the row of the produce quota."""
    done = command("backtest", "quotas.yaml", *arguments, "--format", "json", cwd=work)
    assert done.code in {0, 3}, done.err
    rows: list[dict[str, Any]] = done.json()["verdicts"]
    return {row["bucket"]["user"]: row for row in rows if row["key"] == "producer_byte_rate"}


def words_of_night(rows: str) -> str:
    why = "the second is not known: a delta of more than one second, or a local time that occurs twice or never"
    return f"{rows} not counted, since {why}"


@pytest.mark.parametrize("more", [(), ("--exact",)])
def test_lines_of_the_night_leave_only_their_groups_inconclusive(tmp_path: Path, more: tuple[str, ...]) -> None:
    night_log(tmp_path)
    rows = judged(invoke, tmp_path, "--traffic", "1=kafka-request.log", "--log-timezone", "Europe/Berlin", *more)
    found = {user: (row["verdict"], row["reason"], row["uncharged"]) for user, row in rows.items()}
    assert found == {
        "alice": ("inconclusive", words_of_night("120 rows"), 120),
        "bob": ("clear", None, 0),
        "carol": ("inconclusive", words_of_night("31 rows"), 31),
        "dave": ("inconclusive", words_of_night("1 row"), 1),
    }  # fmt: skip
    assert rows["bob"]["safe"] > 0
    assert {rows[user][value] for user in ("alice", "carol", "dave") for value in ("safe", "recommended")} == {None}


def test_totals_of_a_folder_know_the_lines_of_the_night(tmp_path: Path) -> None:
    night_log(tmp_path)
    done = invoke(
        *("compact", "--traffic", "1=kafka-request.log", "--folder", "cells", "--log-timezone", "Europe/Berlin"), cwd=tmp_path
    )
    assert done.code == 0, done.err
    rows = judged(invoke, tmp_path, "--traffic", "cells")
    assert {user: (row["verdict"], row["uncharged"]) for user, row in rows.items()} == {
        "alice": ("inconclusive", 120), "bob": ("clear", 0), "carol": ("inconclusive", 31), "dave": ("inconclusive", 1),
    }  # fmt: skip
    assert rows["carol"]["reason"] == words_of_night("31 rows")
