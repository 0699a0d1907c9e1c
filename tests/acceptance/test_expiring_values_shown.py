"""That a value is temporary, wherever quotas are shown and manifests are at hand: ``resolve``, ``describe`` and ``report``."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.builders import user
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas, snapshot

SCHEMAS = Path(__file__).parents[2] / "schemas"
MIB = 2.0**20
PAST, FUTURE = "2020-12-01", "2999-12-01"
KEY = "producer_byte_rate"
BEFORE = {"at": f"{FUTURE}T00:00:00Z", "expired": False, "then": 10 * MIB}
AFTER = {"at": f"{PAST}T00:00:00Z", "expired": True, "was": 20 * MIB}


def write(folder: Path, until: str, *, live: float, then: object = "10MiB", value: object = "20MiB") -> None:
    entry = {"value": value, "until": until} | ({} if then is None else {"then": then})
    (folder / "prod.yaml").write_text(cluster())
    (folder / "quotas.yaml").write_text(quotas(({"user": "alice"}, {KEY: entry}), ({"user": "bob"}, {KEY: 5 * MIB})))
    (folder / "live.json").write_text(snapshot({user("alice"): {KEY: live}, user("bob"): {KEY: 5 * MIB}}))


def resolve(folder: Path, *arguments: str, name: str = "alice") -> Done:
    return invoke("resolve", ".", "--current", "live.json", "--name", f"user={name}", *arguments, cwd=folder)


def expiry_of(done: Done) -> dict[str, Any] | None:
    document = done.json()
    jsonschema.validate(document, json.loads((SCHEMAS / "resolve.v1.schema.json").read_text()))
    expiry: dict[str, Any] | None = document["quotas"][KEY].get("expiry")
    return expiry


@pytest.mark.parametrize(
    ("until", "live", "state", "expiry"),
    [
        (FUTURE, 20 * MIB, "current", BEFORE),
        (FUTURE, 10 * MIB, "current", None),  # the temporary value is not applied yet
        (FUTURE, 10 * MIB, "planned", BEFORE),
        (FUTURE, 10 * MIB, "manifests", BEFORE),
        (PAST, 20 * MIB, "current", AFTER),  # not taken back yet
        (PAST, 10 * MIB, "current", None),
        (PAST, 20 * MIB, "planned", None),
        (PAST, 20 * MIB, "manifests", None),
    ],
)
def test_resolve_shows_that_a_limit_is_temporary(until, live, state, expiry, tmp_path):
    write(tmp_path, until, live=live)

    assert expiry_of(resolve(tmp_path, "--state", state, "--format", "json")) == expiry
    assert expiry_of(resolve(tmp_path, "--state", state, "--format", "json", name="bob")) is None
    text = " ".join(resolve(tmp_path, "--state", state).out.split())
    assert (f"temporary until {FUTURE}: then 10 MiB/s" in text) == (expiry == BEFORE)
    assert (f"temporary expired on {PAST} and was not taken back yet" in text) == (expiry == AFTER)


@pytest.mark.parametrize(("then", "follows"), [("10MiB", "10 MiB/s"), (None, "no value of its own")])
def test_describe_has_a_column_for_people_and_a_note_beside_what_programs_read(then, follows, tmp_path):
    write(tmp_path, FUTURE, live=20 * MIB, then=then)
    arguments = ("describe", ".", "--current", "live.json")
    table = invoke(*arguments, "--format", "table", cwd=tmp_path)
    plain = invoke(*arguments, "--format", "text", cwd=tmp_path)
    quiet = invoke(*arguments, "--format", "text", "--quiet", cwd=tmp_path)

    (row,) = [line for line in table.out.splitlines() if "alice" in line]
    assert row.endswith(f"until {FUTURE}: then {follows}")
    assert f"until {FUTURE}" not in table.err
    assert plain.out == quiet.out
    assert FUTURE not in plain.out
    assert f"note: {KEY} of user=alice is temporary: until {FUTURE}: then {follows}" in plain.err
    assert FUTURE not in quiet.err


def test_report_lists_temporary_values_with_what_follows(tmp_path):
    write(tmp_path, FUTURE, live=20 * MIB)
    arguments = ("report", ".", "--current", "live.json")
    document = invoke(*arguments, "--format", "json", cwd=tmp_path).json()
    jsonschema.validate(document, json.loads((SCHEMAS / "report.v1.schema.json").read_text()))
    entities = {str(row["entity"]): row for row in document["clusters"][0]["entities"]}

    assert [row.get("expiries") for row in entities.values()] == [{KEY: BEFORE}, None]
    page = invoke(*arguments, "--format", "html", cwd=tmp_path).out.replace("\xa0", " ")
    assert "Temporary values" in page
    assert f"until {FUTURE}: then 10 MiB/s" in page


def moment(offset_hours: int, seconds: int) -> str:
    """A moment so many seconds from now, as clocks of that time zone show it."""
    zone = datetime.timezone(datetime.timedelta(hours=offset_hours))
    return (datetime.datetime.now(zone) + datetime.timedelta(seconds=seconds)).isoformat(timespec="seconds")


@pytest.fixture(params=["UTC", "Pacific/Kiritimati", "America/Los_Angeles"])
def machine(request, monkeypatch) -> Iterator[str]:
    """The time zone of the machine."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("offset_hours", [-12, 0, 14])
@pytest.mark.parametrize(("seconds", "expired"), [(-120, True), (7200, False)])
def test_a_moment_is_the_same_in_every_time_zone(offset_hours, seconds, expired, tmp_path):
    write(tmp_path, moment(offset_hours, seconds), live=20 * MIB)
    done = invoke("plan", ".", "--current", "live.json", "--format", "json", cwd=tmp_path)

    keys = [key for change in done.json()["changes"] for key in change["keys"].values()]
    assert [key["expiry"]["expired"] for key in keys] == ([True] if expired else [])
