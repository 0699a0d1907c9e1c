"""``kafka-quotas resolve`` as a user runs it, on snapshots and manifests."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.entity import DEFAULT
from tests.builders import client, ip, pair, user
from tests.support import manifests
from tests.support.command import Done, invoke, run
from tests.support.schemas import valid

PRODUCE, CONSUME, CONNECT = "producer_byte_rate", "consumer_byte_rate", "connection_creation_rate"
ODD = "tab\there\u202e\u00e4"
LIVE = {
    user("alice"): {PRODUCE: 20971520.0},
    user(): {PRODUCE: 3_000_000.0, CONSUME: float("nan")},
    pair("alice", "etl"): {CONSUME: 7_000_000.0},
    client("app"): {PRODUCE: 1.0},
    pair(DEFAULT, DEFAULT): {"request_percentage": 12.5},
    user(ODD): {"controller_mutation_rate": 5.0},
    user("<default>"): {PRODUCE: 9.0},
    ip(): {CONNECT: 9.0},
    ip("::1"): {CONNECT: 2.0},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "snap.json").write_text(manifests.snapshot(LIVE))
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "cluster.yaml").write_text(manifests.cluster(scope={"include": [{"user": "alice"}, {"user": "new"}]}))
    entries = (({"user": "alice"}, {PRODUCE: "10MiB"}), ({"user": "new"}, {PRODUCE: "1MiB"}))
    (tmp_path / "team" / "quotas.yaml").write_text(manifests.quotas(*entries))
    return tmp_path


def resolve(folder: Path, *arguments: str, **environment_variables: str) -> Done:
    command = run if "PYTHONIOENCODING" in environment_variables else invoke
    return command("resolve", *arguments, cwd=folder, env=environment_variables)


def test_one_client_as_json_has_values_sources_levels_buckets_and_members(folder: Path) -> None:
    done = resolve(folder, "--current", "snap.json", "--names", "user=alice,client-id=etl", "--explain", "--format", "json")
    assert (done.code, done.err) == (0, "")
    document = valid(done.json(), "resolve")
    assert document["entity"] == {"user": "alice", "client-id": "etl"}
    assert (document["state"], document["cluster"]["id"], "unknown" in document) == ("snapshot", "c1", False)
    assert document["quotas"] == {
        PRODUCE: {
            "value": 20971520,
            "source": {"user": "alice"},
            "level": 3,
            "bucket": {"user": "alice"},
            "overridden": [{"entity": {"user": None}, "value": 3000000, "level": 6}],
        },
        CONSUME: {
            "value": 7000000,
            "source": {"user": "alice", "client-id": "etl"},
            "level": 1,
            "bucket": {"user": "alice", "client-id": "etl"},
            "overridden": [{"entity": {"user": None}, "value": "NaN", "level": 6}],
        },
        "request_percentage": {
            "value": 12.5,
            "source": {"user": None, "client-id": None},
            "level": 5,
            "bucket": {"user": "alice", "client-id": "etl"},
            "overridden": [],
        },
    }


def test_the_ladder_marks_the_hit_in_plain_ascii_whatever_the_terminal(folder: Path) -> None:
    asked = ("--current", "snap.json", "--name", f"user={ODD}", "--name", "client-id=app", "--explain")
    plain = resolve(folder, *asked, NO_COLOR="1")
    narrow = resolve(folder, *asked, PYTHONIOENCODING="ascii")
    coloured = resolve(folder, *asked, "--color", "always")
    ladder = [line for line in plain.out.splitlines() if "|" in line][:8]
    assert [line.split("|")[0].split()[-1] for line in ladder] == list("12345678")
    assert ["==>" in line for line in ladder] == [False] * 5 + [True] + [False] * 2
    assert "applies" in ladder[5]
    assert "overridden" in ladder[6]
    assert plain.out.replace("\u00e4", "\\xe4") == narrow.out
    assert "\t" not in plain.out
    assert "\u202e" not in plain.out
    assert "\x1b[" not in plain.out
    assert "\x1b[" in coloured.out
    document = valid(resolve(folder, *asked, "--format", "json").json(), "resolve")
    rungs = document["ladder"][PRODUCE]
    assert [rung["status"] for rung in rungs] == ["unset"] * 5 + ["wins", "hidden", "unset"]
    assert [rung["level"] for rung in rungs] == list(range(1, 9))
    assert rungs[0]["entity"] == {"user": ODD, "client-id": "app"}


def test_all_names_every_entity(folder: Path) -> None:
    whole = valid(resolve(folder, "--current", "snap.json", "--all", "--explain", "--format", "json").json(), "resolve-list")
    assert len(whole["resolutions"]) > len(LIVE)
    text = resolve(folder, "--current", "snap.json", "--all").out
    assert text.count("\n\n") >= len(LIVE)
    assert "user=(any other) client-id=app" in text


def test_manifests_alone_and_the_plan(folder: Path) -> None:
    alone = valid(resolve(folder, "team", "--state", "manifests", "--name", "user=alice", "--format", "json").json(), "resolve")
    assert (alone["state"], alone["observed"]) == ("manifests", None)
    assert alone["quotas"][PRODUCE]["value"] == 10 * 1024**2
    assert any("unmanaged" in note for note in alone["notes"])
    planned = resolve(
        folder, "team", "--current", "snap.json", "--state", "planned", "--name", "user=bob", "--format", "json"
    ).json()
    assert planned["state"] == "planned"
    assert planned["quotas"][PRODUCE] == {**planned["quotas"][PRODUCE], "value": 3000000, "source": {"user": None}}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name a client"),
        (("--all", "--name", "user=a"), "an entity and --all exclude each other"),
        (("--name", "usr=a"), "'usr' is not an entity type. The types are user, client-id, ip. Did you mean 'user'?"),
        (("--name", "user=a", "--defaults", "user"), "both name the user"),
        (("--name", "user=a", "--name", "ip=10.0.0.7"), "cannot be combined"),
        (("--name", "ip=::1::"), "neither an address nor a host name"),
        (("--name", "user=a", "--state", "mainfests"), "Did you mean 'manifests'"),
        (("--name", "user=a", "--bootstrap-server", "127.0.0.1:1"), "--current and --bootstrap-server exclude each other"),
    ],
)
def test_a_way_of_asking_that_cannot_work_is_64_and_says_why(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    done = resolve(folder, "--current", "snap.json", *arguments)
    assert (done.code, done.out) == (64, "")
    assert words in done.err
