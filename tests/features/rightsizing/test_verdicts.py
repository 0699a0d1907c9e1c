"""Which limits are raised, lowered, unused or left, by months of traffic, and why."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.features.rightsizing.conftest import MIB, World, burst
from tests.support import manifests
from tests.support.gauge_parquet import Client, Shape, steady, write_gauges
from tests.support.hostile_names import HOSTILE
from tests.support.schemas import valid


def test_each_verdict_is_given_with_its_reason_and_the_document_is_that_of_its_schema(world: World) -> None:
    world.limits(over="1MiB", idle="20MiB", gone="4MiB", well="4MiB")
    world.traffic(burst("over", 2 * MIB), burst("idle", 0.1 * MIB), burst("well", 2 * MIB))
    sized = world.sized()
    assert {name: quota["verdict"] for name, quota in sized.items()} == {
        "over": "raise",
        "idle": "lower",
        "gone": "unused",
        "well": "fits",
    }
    assert sized["over"]["value"] == 2.5 * MIB
    assert sized["over"]["backtest"]["verdict"] == "clear"
    assert sized["idle"]["value"] == 10 * MIB, "a cut to less than half would trip the guard of large reductions"
    assert sized["gone"]["value"] is None
    valid(json.loads(world.run("--format", "json").out), "rightsize")
    assert "2 changes proposed. Of 4 limits: 1 to raise, 1 to lower, 1 unused, 1 fits." in world.run().out


def test_a_quiet_week_at_the_end_lowers_nothing(world: World) -> None:
    world.limits(weekly="4MiB")
    world.traffic(burst("weekly", 2 * MIB, days=93), burst("weekly", 0.01 * MIB, since=93, days=7))
    assert world.verdicts() == {"weekly": "fits"}


def test_a_week_with_an_incident_and_a_limit_that_was_raised_since_lower_nothing(world: World) -> None:
    world.limits(incident="20MiB", raised="20MiB")
    quiet = burst("incident", 0.1 * MIB)
    world.traffic(
        quiet,
        burst("incident", 0.5 * MIB, since=40, days=7, hours=1, throttled=True),
        burst("raised", MIB, days=50, throttled=True),
        burst("raised", 2 * MIB, since=50, days=50),
    )
    sized = world.sized()
    assert {name: quota["verdict"] for name, quota in sized.items()} == {"incident": "inconclusive", "raised": "inconclusive"}
    assert all("a quota throttled its clients in this history" in quota["reason"] for quota in sized.values())


def test_a_client_that_began_this_week_or_moved_away_is_not_lowered(world: World) -> None:
    world.limits(new="20MiB", moved="20MiB", other="1MiB")
    world.traffic(burst("new", 0.1 * MIB, since=95, days=5), burst("moved", 0.1 * MIB, days=60), burst("other", 0.5 * MIB))
    sized = world.sized()
    assert (sized["new"]["verdict"], sized["moved"]["verdict"]) == ("inconclusive", "inconclusive")
    assert "two whole weeks decide" in sized["new"]["reason"]
    assert "no traffic was recorded since 2027-01-19" in sized["moved"]["reason"]


def test_a_quota_is_unused_after_ninety_days_and_a_default_never(world: World) -> None:
    world.write(
        "team.yaml",
        manifests.quotas(
            ({"user": "left"}, {"producer_byte_rate": "4MiB"}),
            ({"user": {"default": True}, "client-id": "batch"}, {"producer_byte_rate": "1MiB"}),
        ),
    )
    world.traffic(burst("left", MIB, days=5), burst("left", MIB, days=1, since=99, kind="fetch"))
    sized = world.sized()
    assert (sized["left"]["verdict"], sized["None"]["verdict"]) == ("unused", "fits")
    assert "last request was on 2026-11-25" in sized["left"]["reason"]


def test_a_history_with_a_hole_or_rows_that_cannot_be_read_shows_no_unused_quota(world: World) -> None:
    """Its clients may have used it then."""
    world.limits(gone="4MiB", left="4MiB")
    world.traffic(burst("left", MIB, days=5), burst("well", MIB))
    file = world.folder / "traffic.parquet"
    whole = pq.read_table(file)
    assert world.verdicts() == {"gone": "unused", "left": "unused"}

    first = pc.min(whole["ts"]).as_py()
    begin, end = (pa.scalar(first + datetime.timedelta(days=days), whole["ts"].type) for days in (30, 40))
    pq.write_table(whole.filter(pc.or_(pc.less(whole["ts"], begin), pc.greater(whole["ts"], end))), file)
    holed = world.sized()
    torn = pa.Table.from_pylist([{**whole.slice(0, 1).to_pylist()[0], "amount": -1}], whole.schema)
    pq.write_table(pa.concat_tables([whole, torn]), file)
    once, done = world.verdicts(), world.run()
    pq.write_table(pa.concat_tables([whole, *[torn] * 50]), file)
    damaged = world.sized()

    assert once == {"gone": "unused", "left": "unused"}
    assert {quota["verdict"] for found in (holed, damaged) for quota in found.values()} == {"inconclusive"}
    assert all("broker 1 has no lines for 240 h" in quota["reason"] for quota in holed.values()), holed
    assert all(quota["reason"].endswith("but 50 rows of the history cannot be read") for quota in damaged.values())
    assert "Note: 1 row of the history cannot be read" in done.out


def test_an_excluded_entry_is_listed_with_its_note_which_is_required(world: World) -> None:
    entry: dict[str, Any] = {"match": {"user": "sale"}, "rightsize": "never", "quotas": {"producer_byte_rate": "20MiB"}}
    document = {"apiVersion": "kafka-quotas/v1", "kind": "ClientQuotas", "metadata": {"name": "t"}, "spec": {"quotas": [entry]}}
    world.write("team.yaml", json.dumps(document))
    world.traffic(burst("sale", 0.1 * MIB))
    refused = world.run()
    assert (refused.code, "rightsize: never needs a note" in refused.out + refused.err) == (1, True)
    entry["note"] = "for the yearly sale"
    world.write("team.yaml", json.dumps(document))
    assert world.sized()["sale"] | {"source": None} == world.sized()["sale"] | {
        "verdict": "excluded",
        "reason": "for the yearly sale",
        "value": None,
        "source": None,
    }


def test_a_proposal_stays_inside_the_limits_and_the_budget_of_its_owner(world: World) -> None:
    owners: dict[str, object] = {"team-a": {}, "team-b": {}}
    limits = [{"owner": "team-a", "producer_byte_rate": {"max": "1.5MiB"}}]
    budgets = [{"owner": "team-b", "producer_byte_rate": "3MiB"}]
    world.write("kafka-quotas.yaml", manifests.repository(owners=owners, limits=limits, budgets=budgets))
    world.write("a.yaml", manifests.quotas(({"user": "a"}, {"producer_byte_rate": "1MiB"}), owner="team-a"))
    of_b = [({"user": name}, {"producer_byte_rate": "1MiB"}) for name in ("b", "c")]
    world.write("b.yaml", manifests.quotas(*of_b, owner="team-b"))
    world.traffic(burst("a", 4 * MIB), burst("b", 4 * MIB), burst("c", 8 * MIB))
    sized = world.sized()
    assert (sized["a"]["value"], sized["a"]["left"]) == (1.5 * MIB, None)
    assert sized["a"]["reason"].endswith(". The limits of its owner allow no more")
    assert (sized["c"]["value"], sized["c"]["left"]) == (2.0 * MIB, None)
    assert sized["c"]["reason"].endswith(". The budget of its owner has no room for more")
    assert sized["c"]["backtest"]["verdict"] == "throttled", "the budget has no room for all that it needs"
    assert "the budget of team-b has 0 B/s left" in sized["b"]["left"].replace("\N{NO-BREAK SPACE}", " ")


def test_an_owner_gets_the_worst_changes_first_and_no_more_than_the_rules_allow(world: World) -> None:
    world.write("kafka-quotas.yaml", manifests.repository(rightsize={"changes": 1}))
    world.limits(little="1MiB", much="1MiB")
    world.traffic(burst("little", 1.5 * MIB), burst("much", 9 * MIB))
    sized = world.sized()
    assert (sized["much"]["left"], sized["little"]["left"]) == (None, "1 change of its owner comes first")


def test_names_of_strangers_are_escaped_in_text_and_on_pages(world: World) -> None:
    names = [name for name in HOSTILE if name and max(name) < "\ud800"]
    entries = [({"user": name}, {"producer_byte_rate": "1MiB"}) for name in names]
    world.write("team.yaml", manifests.quotas(*entries))
    world.traffic(burst("someone", MIB), *(burst(str(match["user"]), 4 * MIB, days=1) for match, _ in entries))
    for form in ("text", "markdown", "html"):
        done = world.run("--format", form)
        assert done.code == 0, done.err
        assert form != "html" or "<script>alert" not in done.out
        assert "\x1b" not in done.out


@pytest.mark.parametrize(("every_s", "verdict"), [(15, "lower"), (300, "inconclusive")])
def test_samples_of_metrics_lower_a_limit_with_the_margin_of_their_distance(world: World, every_s: int, verdict: str) -> None:
    world.limits(idle="20MiB", busy="1MiB")
    rates: dict[Client, Shape] = {("idle", None, 1): steady(100 * 1024), ("busy", None, 1): steady(2 * MIB)}
    write_gauges(world.folder / "traffic.parquet", rates, every_s=every_s, samples=20 * 86_400 // every_s)
    sized = world.sized()
    assert sized["idle"]["verdict"] == verdict
    assert sized["busy"]["verdict"] == "raise"


def test_metrics_without_two_days_of_twenty_lower_no_limit(world: World) -> None:
    """What its clients did while the server was down is not known."""
    world.limits(idle="20MiB")
    write_gauges(world.folder / "gauges", {("idle", None, 1): steady(100 * 1024)}, samples=20 * 24 * 240)
    whole = pq.read_table(world.folder / "gauges")
    holed = pa.concat_tables([whole.slice(0, 200 * 240), whole.slice(248 * 240)])
    pq.write_table(holed, world.folder / "traffic.parquet")
    sized = world.sized()["idle"]
    assert (sized["verdict"], sized["value"]) == ("inconclusive", None)
    assert "but it is not lowered: broker 1 has no lines for 48 h of 479 h 59 min" in sized["reason"]
