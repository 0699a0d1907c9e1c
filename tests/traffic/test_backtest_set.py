"""``backtest --set``: single quotas without a manifest, or on top of manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reconciler.formats.shapes import load_schema
from tests.support.command import Done, invoke
from tests.traffic.conftest import RECORDINGS, recorded_snapshot

LOG = str(RECORDINGS / "kafka-4.3.1" / "kafka-request.log.gz")
HEAD = "apiVersion: kafka-quotas/v1\n"
ALICE = "    - match: {user: alice}\n      quotas: {producer_byte_rate: 100KiB}\n"
BOB = "    - match: {user: bob, client-id: {default: true}}\n      quotas: {consumer_byte_rate: 1KiB}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "now.json").write_text(recorded_snapshot(), encoding="utf-8")
    return tmp_path


def write_manifests(folder: Path, entries: str) -> None:
    (folder / "quotas").mkdir()
    cluster = HEAD + "kind: Cluster\nmetadata: {name: prod}\nspec: {prune: never}\n"
    (folder / "quotas" / "cluster.yaml").write_text(cluster, encoding="utf-8")
    (folder / "quotas" / "q.yaml").write_text(f"{HEAD}kind: ClientQuotas\nspec:\n  quotas:\n{entries}", encoding="utf-8")


def backtest(folder: Path, *arguments: str) -> Done:
    return invoke("backtest", *arguments, "--traffic", f"3={LOG}", cwd=folder)


def judged(folder: Path, *arguments: str) -> dict[str, Any]:
    done = backtest(folder, *arguments, "--format", "json")
    assert done.code == 0, done.err
    document = done.json()
    jsonschema.Draft202012Validator(load_schema("backtest")).validate(document)
    return document


def without_places(document: dict[str, Any]) -> dict[str, Any]:
    findings = [{**each, "file": None, "line": None, "column": None} for each in document["findings"]]
    return {**document, "findings": findings, "cluster": None, "notes": []}


SETTINGS = ("--set", "user=alice:producer_byte_rate=100KiB", "--set", "user=bob,client-id:consumer_byte_rate=1KiB")


@pytest.mark.parametrize("current", [(), ("--current", "now.json")], ids=["unknown", "snapshot"])
def test_settings_give_the_report_of_a_manifest_that_declares_the_same(folder: Path, current: tuple[str, ...]) -> None:
    write_manifests(folder, ALICE + BOB)
    declared = judged(folder, "quotas", *current)
    if current:
        # A manifest drops the other keys of its entities, and --set keeps them.
        assert {row["key"] for row in declared["verdicts"] if row["changed"]} >= {"producer_byte_rate", "consumer_byte_rate"}
    settings = judged(folder, *SETTINGS, *current)
    chosen = ("alice", "producer_byte_rate"), ("bob", "consumer_byte_rate")
    rows = [
        [row for row in document["verdicts"] if (row["bucket"].get("user"), row["key"]) in chosen]
        for document in (without_places(declared), without_places(settings))
    ]
    assert len(rows[0]) >= 2
    assert rows[0] == rows[1]
    if not current:
        assert without_places(settings) == without_places(declared)


def test_a_setting_keeps_the_other_quotas_of_the_snapshot(folder: Path) -> None:
    document = judged(folder, "--set", "user=alice:producer_byte_rate=100KiB", "--current", "now.json")
    changed = [(row["bucket"], row["limit_before"], row["limit_after"]) for row in document["verdicts"] if row["changed"]]
    assert changed == [({"user": "alice"}, 307200, 102400)]


def test_settings_are_on_top_of_the_manifests_that_are_named(folder: Path) -> None:
    write_manifests(folder, ALICE + BOB)
    document = judged(folder, "quotas", "--set", "user=alice:producer_byte_rate=50KiB")
    assert document["cluster"] == "prod"
    limits = {row["bucket"]["user"]: row["limit_after"] for row in document["verdicts"] if row["changed"]}
    assert limits == {"alice": 51200, "bob": 1024}
    (finding,) = [each for each in document["findings"] if each["id"] == "would-throttle" and "alice" in each["message"]]
    assert "file" not in finding, "no line of a manifest has the value of --set"


def test_manifests_of_the_folder_do_not_count_unless_they_are_named(folder: Path) -> None:
    write_manifests(folder, ALICE + BOB)
    document = judged(folder, "--set", "user=carol:producer_byte_rate=50KiB")
    assert document["cluster"] is None
    assert {row["bucket"]["user"] for row in document["verdicts"] if row["changed"]} == {"carol"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user=alice:producer_byte_rat=5", "'producer_byte_rat' is not a quota key"),
        ("user=a,O=b:producer_byte_rate=5", "name is written \\,"),
        ("user=:producer_byte_rate=5", "user alone in --set"),
        ("user=a", "--set takes ENTITY:KEY=VALUE"),
        ("user=a:producer_byte_rate", "--set takes ENTITY:KEY=VALUE"),
        ("user=\x1b[31m:producer_byte_rate", r"not 'user=\u001b[31m:producer_byte_rate'"),
    ],
)
def test_a_bad_setting_is_one_sentence(folder: Path, text: str, message: str) -> None:
    done = backtest(folder, "--set", text)
    assert (done.code, done.out) == (64, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_one_quota_set_twice_is_refused_and_two_keys_of_an_entity_are_not(folder: Path) -> None:
    done = backtest(folder, "--set", "user=a:producer_byte_rate=1", "--set", "user=a:producer_byte_rate=2")
    assert (done.code, done.err) == (64, "kafka-quotas: --set sets 'producer_byte_rate' of user=a twice. Keep one of the two\n")
    done = backtest(folder, "--set", "user=a:producer_byte_rate=1", "--set", "user=a:consumer_byte_rate=2")
    assert done.code == 0


def test_names_may_have_any_character(folder: Path) -> None:
    document = judged(folder, "--set", "user=CN=a:b\\,O=\\c,client-id:producer_byte_rate=1")
    assert [change["entity"] for change in document["unjudged"]] == [{"user": "CN=a:b,O=\\c", "client-id": None}]


def test_the_literal_name_of_the_default_is_warned_about(folder: Path) -> None:
    done = backtest(folder, "--set", "user=<default>:producer_byte_rate=1")
    assert "The default user is written as user alone, without a name" in done.err
