"""``kafka-quotas why`` as a user runs it: a git repository with a history, and the request log of a throttled client."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support import manifests
from tests.support.command import Done, invoke
from tests.support.git_repository import GitRepository
from tests.support.incident_log import START, Sender, SentRequest, write_log
from tests.support.schemas import valid

pytest.importorskip("pyarrow")

AT = ("--at", "2026-11-21T13:02:00Z")
LIMIT = 50_000.0
SENDERS = (
    Sender(user="orders", client_id="checkout", size=4_000, every_s=0.5, begin_s=0, end_s=240),
    Sender(user="orders", client_id="batch", size=90_000, every_s=0.5, begin_s=90, end_s=150),
    Sender(user="audit", client_id="trail", size=1_000, every_s=0.5, begin_s=0, end_s=240),
)
MANIFEST = "quotas/team.yaml"


def quotas(value: str, **more: str) -> str:
    return manifests.quotas(
        ({"user": "orders"}, {"producer_byte_rate": value, **more}), ({"user": "audit"}, {"producer_byte_rate": "4KB"})
    )


def sent_requests(folder: Path) -> list[SentRequest]:
    """The requests of the log in the folder."""
    return write_log(folder / "request.log", SENDERS, {"orders": LIMIT, "audit": 4_000.0})


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    """The limit of orders is halved ten minutes before the log begins."""
    made = GitRepository(tmp_path / "repository")
    made.write(MANIFEST, quotas("100KB"))
    made.commit("Quotas of the teams", at=START - datetime.timedelta(days=3))
    made.write(MANIFEST, quotas("50KB"))
    made.commit("Halve orders", at=START - datetime.timedelta(minutes=10))
    sent_requests(tmp_path)
    return made


def why(repository: GitRepository, *arguments: str, env: Mapping[str, str] | None = None) -> Done:
    return invoke("why", "quotas", *arguments, cwd=repository.folder, env=env)


def write_snapshot(path: Path, brokers: list[int]) -> Path:
    """Of a cluster without quotas beside those of the manifests."""
    cluster = {"name": None, "id": None, "kafka_version": "4.4"}
    seen = {"at": "2026-11-21T12:59:00Z", "from": "broker"}
    leaders = {"partitions": {}, "leaderless": 0, "absent": []}
    state = {
        "format_version": "1.0",
        "cluster": cluster,
        "observed": seen,
        "brokers": brokers,
        "leaders": leaders,
        "entities": [],
    }
    path.write_text(json.dumps(state), "utf-8")
    return path


def document(done: Done) -> dict[str, Any]:
    made: dict[str, Any] = done.json()
    valid(made, "why")
    return made


def moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


TRAFFIC = ("--traffic", "1=../request.log")


def checkout(repository: GitRepository, *more: str) -> dict[str, Any]:
    """The document about the throttled client."""
    return document(why(repository, "--name", "client-id=checkout", *AT, *TRAFFIC, "--format", "json", *more))


def test_an_incident_has_its_group_who_filled_it_and_the_commit(repository: GitRepository, tmp_path: Path) -> None:
    done = why(repository, "--name", "client-id=checkout", *AT, *TRAFFIC, "--format", "json", "--detailed-exitcode")

    report = document(done)
    throttled = [one for one in sent_requests(tmp_path) if one.client_id == "checkout" and one.throttle_ms]
    assert (done.code, report["answer"], done.err) == (2, "throttled", "")
    assert abs(moment(report["incident"]["begin"]) - throttled[0].at) < datetime.timedelta(seconds=0.01)
    last = max(one.at + datetime.timedelta(milliseconds=one.throttle_ms) for one in throttled)
    assert abs(moment(report["incident"]["end"]) - last) < datetime.timedelta(seconds=0.01)
    assert report["recorded"]["requests"] == len(throttled)
    assert report["recorded"]["longest_ms"] == max(one.throttle_ms for one in throttled)
    assert (report["incident"]["begins_earlier"], report["incident"]["goes_on"]) == (False, False)
    cause, *others = report["groups"]
    assert (cause["bucket"], cause["key"], cause["broker"], cause["limit"]) == (
        {"user": "orders"}, "producer_byte_rate", 1, 50_000,
    )  # fmt: skip
    assert cause["cause"]
    assert not [one for one in others if one["cause"]]
    assert [one["client_id"] for one in cause["members"]] == ["batch", "checkout"]
    assert cause["members"][0]["share"] > 0.9
    origin = cause["origin"]
    assert (origin["subject"], origin["author"]) == ("Halve orders", "Somebody")
    assert (origin["before"], origin["file"]) == (100_000, MANIFEST)
    assert origin["commit"] == repository.git("rev-parse", "HEAD")
    assert cause["peak"] <= cause["would_pass"] <= cause["recommended"]


def test_the_value_that_would_have_passed_passes(repository: GitRepository) -> None:
    report = checkout(repository)
    repository.write(MANIFEST, quotas(f"{report['groups'][0]['would_pass']}B"))

    again = invoke("backtest", "quotas", *TRAFFIC, "--exact", "--format", "json", cwd=repository.folder)

    throttled = {one["bucket"]["user"]: one["throttled_after"] for one in again.json()["verdicts"]}
    assert throttled["orders"] == 0


def test_the_text_answers_first_and_fits_80_columns(repository: GitRepository) -> None:
    done = why(repository, "--name", "client-id=checkout", *AT, *TRAFFIC, env={"COLUMNS": "80"})

    rows = done.out.splitlines()
    assert done.code == 0
    assert rows[0].startswith("client-id=checkout was throttled from 2026-11-21 13:01:3")
    assert max(len(row) for row in rows) <= 80
    assert "user orders: producer_byte_rate on broker 1" in rows
    assert "by Somebody: 'Halve orders'" in " ".join(done.out.split())
    order = [rows.index(title) for title in ("What this rests on", "Not known")]
    assert order == sorted(order)
    assert "whether and when those commits were applied: no audit file was given" in " ".join(done.out.split())


def test_a_client_that_was_not_throttled_shows_how_near_it_was(repository: GitRepository) -> None:
    done = why(repository, "--name", "client-id=trail", *AT, *TRAFFIC, "--format", "json", "--detailed-exitcode")

    report = document(done)
    assert (done.code, report["answer"], report["incident"]) == (0, "clear", None)
    group = report["groups"][0]
    assert (group["bucket"], group["limit"], group["cause"]) == ({"user": "audit"}, 4_000, False)
    assert 0.4 < group["peak"] / group["limit"] < 0.8
    text = why(repository, "--name", "client-id=trail", *AT, *TRAFFIC).out
    assert text.startswith("The brokers logged no throttle of client-id=trail from ")
    assert "How near it was" in text


def test_a_log_of_one_broker_of_three_is_not_clear(repository: GitRepository, tmp_path: Path) -> None:
    """The others can have throttled the client."""
    for brokers, answer in (([1], "clear"), ([1, 2, 3], "unknown")):
        snapshot = write_snapshot(tmp_path / "now.json", brokers)
        done = why(repository, "--name", "client-id=trail", *AT, *TRAFFIC, "--current", str(snapshot), "--format", "json")
        assert document(done)["answer"] == answer, done.out

    said = why(repository, "--name", "client-id=trail", *AT, *TRAFFIC, "--current", str(tmp_path / "now.json"))
    assert said.code == 1
    reason = "and the cluster has 3 brokers, and the traffic of that time is of 1. To know it, give their request logs"
    assert reason in " ".join(said.out.split())


def test_a_time_without_recording_is_not_clear(repository: GitRepository) -> None:
    at = ("--at", "2026-11-21T13:30:00Z")
    report = document(why(repository, "--name", "client-id=trail", *at, *TRAFFIC, "--format", "json"))

    assert report["answer"] == "unknown"
    assert "--at is not in it" in report["missing"][0]["because"]
    seen = document(why(repository, "--name", "client-id=trail", *AT, *TRAFFIC, "--format", "json"))
    assert (seen["since"][:19], seen["until"][:19]) == ("2026-11-21T13:00:00", "2026-11-21T13:03:59")


def test_an_unknown_client_is_named_with_one_that_is_like_it(repository: GitRepository) -> None:
    done = why(repository, "--name", "client-id=chekout", *AT, *TRAFFIC, "--format", "json")

    report = document(done)
    assert (done.code, report["answer"]) == (1, "unknown")
    assert report["missing"][0]["because"] == (
        "the traffic of this time has 3 clients, and none is client-id=chekout. Did you mean 'checkout'?"
    )


def test_two_limits_at_once_are_both_causes(repository: GitRepository) -> None:
    repository.write(MANIFEST, quotas("50KB", request_percentage="0.05%"))
    repository.commit("Limit request time", at=START - datetime.timedelta(minutes=5))

    report = checkout(repository)

    causes = {one["key"]: one["origin"]["subject"] for one in report["groups"] if one["cause"]}
    assert causes == {"producer_byte_rate": "Halve orders", "request_percentage": "Limit request time"}


def test_a_commit_that_only_moves_the_line_is_passed_over(repository: GitRepository) -> None:
    halved = repository.git("rev-parse", "HEAD")
    repository.write(MANIFEST, "# The teams\n" + quotas("50000B"))
    repository.commit("Write bytes", at=START - datetime.timedelta(minutes=5))

    report = checkout(repository)

    assert report["groups"][0]["origin"]["commit"] == halved


def test_an_audit_file_says_which_commit_was_applied(repository: GitRepository) -> None:
    applied = repository.git("rev-parse", "HEAD")
    repository.write(MANIFEST, quotas("1MB"))
    repository.commit("Much more", at=START - datetime.timedelta(minutes=5))
    run: dict[str, Any] = {
        "format_version": "1.0", "started": "2026-11-21T12:51:00Z", "ended": "2026-11-21T12:51:07Z", "command": "apply",
        "principal": None, "os_user": "ci", "source": {"commit": applied, "dirty": False}, "validate_only": False,
        "cluster": {"name": None, "id": None, "kafka_version": None}, "digest": None, "accepted": [],
        "summary": {"applied": 1, "failed": 0, "unknown": 0, "not_attempted": 0}, "verified": True, "result": "done",
        "failure_reason": None,
    }  # fmt: skip
    (repository.folder.parent / "runs.jsonl").write_text(json.dumps(run) + "\n")

    by_date, by_audit = checkout(repository), checkout(repository, "--audit", "../runs.jsonl")

    assert by_audit["groups"][0]["limit"] == 50_000
    assert by_audit["groups"][0]["origin"]["applied"] == "2026-11-21T12:51:07Z"
    assert by_audit["groups"][0]["cause"]
    # The newest commit by its date was not applied, and explains nothing.
    assert not any(one["cause"] for one in by_date["groups"])
    assert "which limit throttled the client" in {one["what"] for one in by_date["missing"]}


def test_hostile_names_are_escaped(tmp_path: Path) -> None:
    evil = "a'b $(touch pwned)\n\x1b[31m\u202e;`id`"
    repository = GitRepository(tmp_path / "repository")
    repository.write(MANIFEST, manifests.quotas(({"user": evil}, {"producer_byte_rate": "50KB"})))
    repository.commit("Limit \x1b[31m it", at=START - datetime.timedelta(minutes=5))
    senders = (Sender(user=evil, client_id="x", size=90_000, every_s=0.5, begin_s=30, end_s=60),)
    write_log(tmp_path / "request.log", senders, {evil: LIMIT})

    text = why(repository, "--name", f"user={evil}", *AT, *TRAFFIC)

    assert text.code == 0, text.err
    assert "was throttled" in text.out
    assert all(character.isprintable() or character == "\n" for character in text.out)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--name", "user=a", "--at", "noon"), "'noon' is not a time such as"),
        (("--name", "user=a", "--since", "2026-01-01T00:00Z"), "longer than 7 days"),
        (("--defaults", "user", "--at", "14:03"), "--defaults names a class of clients"),
    ],
)
def test_bad_options_are_one_sentence(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = invoke("why", *arguments, cwd=tmp_path)

    assert (done.code, done.out) == (64, "")
    assert said in done.err
