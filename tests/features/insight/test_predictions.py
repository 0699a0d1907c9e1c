"""``kafka-quotas why --run``: what a backtest predicted of a change, beside a week of traffic since."""

from __future__ import annotations

import datetime
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from reconciler.documents import APPLY_REPORT, BACKTEST
from reconciler.formats import plan_digest
from reconciler.model.plan import (
    Action,
    ApplyReport,
    ApplyResult,
    Change,
    ChangeOutcome,
    ChangeStatus,
    KeyChange,
    Reason,
    RunFacts,
)
from reconciler.model.run_context import Prediction
from reconciler.model.state import ClusterIdentity
from reconciler.policy import predictions_of
from tests.builders import client
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.recorded_parquet import Flow, write_traffic
from tests.support.schemas import valid
from tests.traffic.log_lines import line

pytest.importorskip("pyarrow")

KEY, WEEK_S = "producer_byte_rate", 7 * 86_400
EVERY_S = 60.0
AMOUNT = 1_000_000
"""Of one request: at most 100 kB/s in the window of a broker."""
LIMITS = {"steady": 150_000.0, "doubled": 150_000.0, "busy": 60_000.0, "gone": 150_000.0}
WEEK = datetime.timedelta(seconds=WEEK_S)
APPLIED = (
    datetime.datetime.now(datetime.UTC).replace(hour=8, minute=0, second=0, microsecond=0) - WEEK - datetime.timedelta(days=1)
)
"""A day more than a week ago: ``report`` looks at the last 30 days."""
NOON = APPLIED + datetime.timedelta(days=2, hours=4)


def week(path: Path, begin: datetime.datetime, amounts: dict[str, int], throttled: dict[str, float]) -> Path:
    """A week of requests, one a minute. ``throttled``: by client for how many seconds from noon of the third day on."""
    flows = []
    for name, amount in amounts.items():
        flow = Flow(user="ANONYMOUS", client_id=name, amount=amount, every_s=EVERY_S, end_s=WEEK_S)
        first_s = (NOON - begin).total_seconds() if name in throttled else WEEK_S
        last_s = min(first_s + throttled.get(name, 0), WEEK_S)
        flows += [replace(flow, end_s=first_s), replace(flow, begin_s=last_s)]
        flows.append(replace(flow, begin_s=first_s, end_s=last_s, throttled=True))
    return write_traffic(path, flows, start=begin)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Manifests, snapshots before and after the run, a week before it and a week after it, and the backtest of the first."""
    folder = tmp_path_factory.mktemp("run")
    entries = (({"client-id": name}, {KEY: f"{limit:.0f}B"}) for name, limit in LIMITS.items())
    (folder / "quotas.yaml").write_text(f"{cluster(traffic={'source': 'since.parquet'})}---\n{quotas(*entries)}")
    entities = {client(name): {KEY: 10e6} for name in LIMITS}
    (folder / "before.json").write_text(snapshot(entities))
    (folder / "now.json").write_text(snapshot({client(name): {KEY: limit} for name, limit in LIMITS.items()}))
    history = week(folder / "history.parquet", APPLIED - WEEK, dict.fromkeys(LIMITS, AMOUNT), {})
    since = {"steady": AMOUNT, "doubled": 2 * AMOUNT, "busy": AMOUNT}
    week(folder / "since.parquet", APPLIED, since, {"doubled": 0.04 * WEEK_S, "busy": WEEK_S})
    done = invoke("backtest", ".", "--current", "before.json", "--traffic", str(history), "--format", "json", cwd=folder)
    assert done.code == 0, done.err
    predicted = predictions_of(BACKTEST.read(done.out, name="backtest.json"), CHANGES, "prod")
    for name, made in (
        ("run", report(predicted)),
        ("plain", report()),
        ("timeless", report(predicted, ended=None)),
        ("other", report(predicted, cluster_id="c2")),
        ("old", report(predicted, ended=APPLIED - datetime.timedelta(days=40))),
    ):
        (folder / f"{name}.json").write_text(APPLY_REPORT.text(made))
    return folder


def _lowered(limit: float) -> KeyChange:
    return KeyChange(key=KEY, before=10e6, after=limit, reason=Reason.VALUE_DIFFERS)


CHANGES = tuple(
    Change(entity=client(name), action=Action.UPDATE, keys=(_lowered(limit),)) for name, limit in sorted(LIMITS.items())
)


def report(
    predicted: tuple[Prediction, ...] = (), *, ended: datetime.datetime | None = APPLIED, cluster_id: str = "c1"
) -> ApplyReport:
    return ApplyReport(
        cluster=ClusterIdentity(name="prod", id=cluster_id),
        digest=plan_digest(cluster_id, CHANGES),
        result=ApplyResult.DONE,
        outcomes=tuple(ChangeOutcome(change=change, status=ChangeStatus.APPLIED) for change in CHANGES),
        facts=RunFacts(ended=ended, predictions=predicted),
    )


def why(folder: Path, *more: str, run: str = "run.json", traffic: str = "since.parquet") -> Done:
    until = (APPLIED + WEEK).isoformat()
    return invoke(
        "why", ".", "--run", run, "--current", "now.json", "--traffic", traffic,
        "--until", until, *more, cwd=folder,
    )  # fmt: skip


def test_a_week_with_a_client_whose_traffic_doubled_beside_what_the_backtest_predicted(folder: Path) -> None:
    done = why(folder, "--detailed-exitcode")
    assert done.code == 2, done.err
    title, doubled, gone, busy, steady = done.out.splitlines()
    span = f"{APPLIED:%Y-%m-%d} 08:00 UTC to {APPLIED + WEEK:%Y-%m-%d} 08:00 UTC"
    assert title == f"cluster prod (c1), {span}: 4 changed quota groups: 1 worse, 1 not checked, 2 as predicted"
    assert doubled.startswith("  client-id doubled, producer_byte_rate 146.5 KiB/s (150,000 B/s): ")
    assert doubled.endswith(
        f"cleared, but throttled 4 % of its active time since {NOON:%Y-%m-%d} 12:00 UTC: traffic is 2.0 x the history"
    )
    assert gone.endswith("not checked: the traffic does not show it under the limit that was judged")
    assert busy.endswith(f"predicted throttled 100 %, and throttled 69 % of its active time since {NOON:%Y-%m-%d} 12:00 UTC")
    assert steady.endswith("clear, and never throttled")


def test_the_document_has_both_sides_of_each_group(folder: Path) -> None:
    done = why(folder, "--format", "json")
    assert done.code == 0, done.err
    document = done.json()
    valid(document, "run-comparison")
    groups: dict[str, dict[str, Any]] = {row["bucket"]["client-id"]: row for row in document["groups"]}
    assert {name: (row["verdict"], row["agreement"]) for name, row in groups.items()} == {
        "steady": ("clear", "as-predicted"),
        "doubled": ("clear", "worse"),
        "busy": ("throttled", "as-predicted"),
        "gone": ("clear", "unknown"),
    }
    assert (groups["steady"]["words"], groups["steady"]["by"]) == ("clear, and never throttled", "requests")
    assert groups["doubled"]["throttled"] == pytest.approx(0.04, abs=0.001)
    assert groups["doubled"]["growth"] == pytest.approx(2.0)


def test_a_report_without_predictions_without_a_time_or_of_another_cluster_is_refused(folder: Path) -> None:
    done = why(folder, run="plain.json")
    assert (done.code, "plain.json has no predictions. Apply with --backtest FILE" in done.err) == (64, True)
    assert "'timeless.json' has no time of its end. Pass --since TIME" in why(folder, run="timeless.json").err
    assert "the report is of cluster c2, and these quotas are of c1" in why(folder, run="other.json").err


def test_report_counts_the_predictions_of_the_month(folder: Path, tmp_path: Path) -> None:
    files = ("--run", "run.json", "--run", "old.json")
    page = tmp_path / "report.html"
    done = invoke("report", ".", "--current", "now.json", *files, "--out", f"html={page}", cwd=folder)
    assert done.code == 0, done.err
    counted = "4 changed quota groups: 1 worse, 1 not checked, 2 as predicted"
    words = f"cleared, but throttled 4 % of its active time since {NOON:%Y-%m-%d} 12:00 UTC: traffic is 2.0 x the history"
    assert f"  Predictions of the last 30 days: {counted}\n" in done.out
    assert f"    client-id doubled, producer_byte_rate 146.5 KiB/s (150,000 B/s): {words}\n" in done.out
    shown = re.sub("</?span[^>]*>", "", page.read_text(encoding="utf-8"))
    assert f"In the last 30 days: {counted}." in shown
    assert (words in shown, "clear, and never throttled" in shown) == (True, True)
    assert shown.count(f"{APPLIED:%Y-%m-%d %H:%M} UTC") >= 4


def test_report_without_traffic_has_checked_no_prediction(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(cluster())
    files = ("--run", "run.json")
    done = invoke("report", str(tmp_path), "--current", "now.json", *files, cwd=folder)
    assert done.code == 0, done.err
    assert "4 changed quota groups: 4 not checked\n" in done.out
    assert "    Note: No traffic is given. Pass --traffic, or set spec.traffic of the Cluster manifest" in done.out


def test_traffic_of_an_hour_is_not_shown_as_a_week(folder: Path) -> None:
    rows, end = pq.read_table(folder / "since.parquet"), APPLIED + datetime.timedelta(hours=1)
    pq.write_table(rows.filter(pc.less(rows["ts"], pa.scalar(end))), folder / "hour.parquet")
    day = f"{APPLIED:%Y-%m-%d}"
    note = f"The traffic covers {day} 08:00 UTC to {day} 08:59 UTC only. The rest of this time is not checked."
    assert note in why(folder, traffic="hour.parquet").out
    assert "The traffic covers" not in why(folder).out


def test_traffic_with_a_hole_of_two_days_names_it(folder: Path) -> None:
    first, last = (APPLIED + datetime.timedelta(days=days) for days in (3, 5))
    rows = pq.read_table(folder / "since.parquet")
    holed = rows.filter(pc.or_(pc.less(rows["ts"], pa.scalar(first)), pc.greater_equal(rows["ts"], pa.scalar(last))))
    pq.write_table(holed, folder / "holed.parquet")
    note = "Throttles can be missing: broker 1 has no lines for 48 h of "
    assert note in " ".join(why(folder, traffic="holed.parquet").out.split())
    assert "can be missing" not in why(folder).out


@pytest.mark.parametrize(
    ("begin_s", "words"),
    [
        pytest.param(-10, "clear, and never throttled", id="the throttle of an earlier limit lasts beyond the end of the run"),
        pytest.param(
            10,
            f"throttled 3.3 % of its active time since {APPLIED:%Y-%m-%d} 08:00:10 UTC",
            id="the same throttle under the limit that was judged",
        ),
    ],
)
def test_a_throttle_that_began_before_the_run_is_not_counted_against_it(folder: Path, begin_s: int, words: str) -> None:
    lines = []
    for second in range(-60, 300, 10):
        moment = APPLIED + datetime.timedelta(seconds=second)
        throttle_ms = 30_000 if second == begin_s else 0
        lines.append(
            line(client_id="steady", at=f"{moment:%Y-%m-%d %H:%M:%S},000", correlation_id=second, throttle_ms=throttle_ms)
        )
    (folder / "requests.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = why(folder, traffic="requests.log")
    assert done.code == 0, done.err
    (steady,) = (shown for shown in done.out.splitlines() if "client-id steady" in shown)
    assert words in steady


def test_a_report_that_cannot_be_read_is_named_as_what_it_is(folder: Path) -> None:
    data = json.loads((folder / "run.json").read_text())
    (folder / "wrong.json").write_text(json.dumps({**data, "ended": "noon"}))
    done = why(folder, run="wrong.json")
    assert (done.code, "wrong.json is not an apply report" in done.err) == (1, True), done.err
