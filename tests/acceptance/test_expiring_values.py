"""Values that expire as users meet them: validated, planned, taken back, and shown wherever quotas are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import StalePlanError
from reconciler.planning.saved_plan import read_saved_plan, require_current
from tests.builders import user
from tests.support.command import Done, invoke
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.schemas import valid

MIB = 2.0**20

PAST, FUTURE = "2020-12-01", "2999-12-01"


KEY = "producer_byte_rate"
BEFORE = {"at": f"{FUTURE}T00:00:00Z", "expired": False, "then": 10 * MIB}
AFTER = {"at": f"{PAST}T00:00:00Z", "expired": True, "was": 20 * MIB}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def manifests(folder: Path, until: str, *, value: object = "20MiB", then: object = "10MiB", **spec: Any) -> None:
    (folder / "quotas").mkdir(exist_ok=True)
    entry = {"value": value, "until": until} | ({} if then is None else {"then": then})
    (folder / "quotas" / "prod.yaml").write_text(cluster(**spec))
    (folder / "quotas" / "quotas.yaml").write_text(quotas(({"user": "alice"}, {KEY: entry}), ({"user": "bob"}, {KEY: 5 * MIB})))


def set_live(folder: Path, value: float) -> None:
    state = {user("alice"): {KEY: value}, user("bob"): {KEY: 5 * MIB}}
    (folder / "live.json").write_text(snapshot(state))


def plan(folder: Path, *arguments: str, command: str = "plan") -> Done:
    return invoke(command, "quotas", "--current", "live.json", *arguments, cwd=folder)


def key_of(done: Done) -> dict[str, Any]:
    document = done.json()
    valid(document, "plan")
    (change,) = document["changes"]
    key: dict[str, Any] = change["keys"]["producer_byte_rate"]
    return key


def test_a_plan_shows_until_when_a_value_applies_and_what_follows(folder: Path) -> None:
    manifests(folder, FUTURE)
    set_live(folder, 10 * MIB)

    assert key_of(plan(folder, "--format", "json"))["expiry"] == {"at": f"{FUTURE}T00:00:00Z", "expired": False, "then": 10 * MIB}
    for page in ("text", "markdown", "html"):
        assert f"until {FUTURE}: then 10 MiB/s" in re.sub("</?span[^>]*>", "", plan(folder, "--format", page).out).replace(
            "\xa0", " "
        )


def test_after_the_expiry_a_plan_names_the_reason_and_guards_accept_it(folder: Path) -> None:
    manifests(folder, PAST, then="1MiB")
    set_live(folder, 20 * MIB)
    done = plan(folder, "--format", "json")

    assert key_of(done)["expiry"] == {"at": f"{PAST}T00:00:00Z", "expired": True, "was": 20 * MIB}
    assert done.json()["applyable"] is True
    text = plan(folder).out
    assert f"expired on {PAST}: was 20 MiB/s" in text
    assert "1 value falls back because of the expiry in the manifests." in " ".join(text.split())


def test_guards_measure_an_expired_value_that_the_base_does_not_have(folder: Path) -> None:
    repository = GitRepository(folder)
    manifests(folder, FUTURE, then="10MiB")
    repository.commit("twenty until a far day")
    manifests(folder, PAST, then="1MiB")
    set_live(folder, 20 * MIB)

    done = plan(folder, "--base", "HEAD", "--format", "json").json()
    assert [guard["id"] for guard in done["guards"] if guard["status"] == "needs-acceptance"] == ["large-reduction"]

    repository.commit("merged")
    assert plan(folder, "--base", "HEAD", "--format", "json").json()["applyable"] is True


def test_a_plan_from_before_the_expiry_is_stale_afterwards_and_states_why(folder: Path) -> None:
    manifests(folder, PAST)
    set_live(folder, 10 * MIB)
    saved = read_saved_plan(_planned_before(folder), name="plan.json")
    now = read_saved_plan(plan(folder, "--format", "json").out, name="now.json")
    with pytest.raises(StalePlanError, match=rf"user=alice producer_byte_rate expired on {PAST}, after the plan was made"):
        require_current(saved, now)


def _planned_before(folder: Path) -> str:
    """The plan as it was a day before the expiry."""
    manifests(folder, FUTURE)
    document: dict[str, Any] = plan(folder, "--format", "json").json()
    manifests(folder, PAST)
    document["observed"]["at"] = "2020-11-30T00:00:00Z"
    document["changes"][0]["keys"]["producer_byte_rate"]["expiry"]["at"] = f"{PAST}T00:00:00Z"
    return json.dumps(document)


def resolve(folder: Path, *arguments: str, name: str = "alice") -> Done:
    return invoke("resolve", "quotas", "--current", "live.json", "--name", f"user={name}", *arguments, cwd=folder)


def expiry_of(done: Done) -> dict[str, Any] | None:
    document = done.json()
    valid(document, "resolve")
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
    manifests(tmp_path, until)
    set_live(tmp_path, live)

    assert expiry_of(resolve(tmp_path, "--state", state, "--format", "json")) == expiry
    assert expiry_of(resolve(tmp_path, "--state", state, "--format", "json", name="bob")) is None
    text = " ".join(resolve(tmp_path, "--state", state).out.split())
    assert (f"temporary until {FUTURE}: then 10 MiB/s" in text) == (expiry == BEFORE)
    assert (f"temporary expired on {PAST} and was not taken back yet" in text) == (expiry == AFTER)


def test_a_total_that_follows_is_named_as_written(tmp_path):
    manifests(tmp_path, PAST, then={"clusterTotal": "60MiB"})
    found = invoke("validate", "quotas", cwd=tmp_path)
    assert f"expired on {PAST}: now clusterTotal: 60MiB." in found.out
