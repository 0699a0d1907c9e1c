"""``backtest --propose`` as a user runs it: recommended values in the files, and everything else as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import Done, invoke
from tests.traffic.conftest import RECORDINGS

LOG = str(RECORDINGS / "kafka-4.3.1" / "kafka-request.log.gz")
HEAD = "apiVersion: kafka-quotas/v1\n"
CLUSTER = HEAD + "kind: Cluster\nmetadata: {name: prod}\nspec: {prune: never}\n"
QUOTAS = """\
# Who may write how much.
apiVersion: kafka-quotas/v1
kind: ClientQuotas
spec:
  quotas:
    - match: {user: alice}   # the worst
      quotas:
        producer_byte_rate: "100KiB/s"   # 100KiB/s, as agreed
        consumer_byte_rate: 1GiB

    - {match: {user: zoe}, quotas: {producer_byte_rate: 100KiB}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas" / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    return tmp_path


def write_quotas(folder: Path, text: str = QUOTAS, name: str = "q.yaml") -> Path:
    path = folder / "quotas" / name
    path.write_bytes(text.encode())
    return path


def propose(folder: Path, *arguments: str) -> Done:
    return invoke("backtest", "quotas", "--traffic", f"3={LOG}", "--propose", *arguments, cwd=folder)


def recommended(folder: Path) -> dict[tuple[str, str], float]:
    done = invoke("backtest", "quotas", "--traffic", f"3={LOG}", "--format", "json", cwd=folder)
    return {(row["bucket"].get("user"), row["key"]): row["recommended"] for row in done.json()["verdicts"]}


def test_the_recommended_value_is_the_only_change(folder: Path) -> None:
    path = write_quotas(folder)
    assert recommended(folder)["alice", "producer_byte_rate"] == 575 * 1024
    done = propose(folder)
    assert (done.code, done.err) == (0, "")
    assert path.read_text(encoding="utf-8") == QUOTAS.replace('"100KiB/s"', '"575KiB/s"')
    assert "Proposed: 1 recommended value, written into the manifests" in done.out
    assert "quotas/q.yaml:8:29: producer_byte_rate of user=alice: 100KiB/s -> 575KiB/s" in done.out
    assert "a lower bound: a quota throttled these clients when they were recorded" in done.out
    assert '-        producer_byte_rate: "100KiB/s"   # 100KiB/s, as agreed\n' in done.out
    assert '+        producer_byte_rate: "575KiB/s"   # 100KiB/s, as agreed\n' in done.out
    again = propose(folder)
    assert "Proposed: no value of the manifests throttles recorded traffic. Nothing to write" in again.out
    assert path.read_text(encoding="utf-8") == QUOTAS.replace('"100KiB/s"', '"575KiB/s"')


def test_a_dry_run_prints_the_same_diff_and_writes_nothing(folder: Path) -> None:
    path = write_quotas(folder)
    dry = propose(folder, "--dry-run")
    assert path.read_text(encoding="utf-8") == QUOTAS
    assert "Proposed: 1 recommended value, not written (--dry-run)" in dry.out
    written = propose(folder)
    assert dry.out.partition("--- a/quotas")[2] == written.out.partition("--- a/quotas")[2] != ""


def test_line_ends_permissions_and_a_byte_order_mark_stay(folder: Path) -> None:
    path = write_quotas(folder, "\ufeff" + QUOTAS.replace("\n", "\r\n"))
    path.chmod(0o640)
    assert propose(folder).code == 0
    expected = "\ufeff" + QUOTAS.replace('"100KiB/s"', '"575KiB/s"').replace("\n", "\r\n")
    assert path.read_bytes() == expected.encode()
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_value_of_a_profile_or_a_list_becomes_what_is_safe_for_all_of_them(folder: Path) -> None:
    repository = HEAD + "kind: Repository\nspec:\n  profiles:\n    small: {quotas: {producer_byte_rate: 20KiB}}  # three teams\n"
    (folder / "quotas" / "kafka-quotas.yaml").write_text(repository, encoding="utf-8")
    (folder / "quotas" / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    entries = "    - {match: {user: [alice, bob]}, profile: small}\n    - {match: {user: carol}, profile: small}\n"
    path = write_quotas(folder, f"{HEAD}kind: ClientQuotas\nspec:\n  quotas:\n{entries}")
    before = recommended(folder)
    each = {before[user, "producer_byte_rate"] for user in ("alice", "bob", "carol")}
    assert len(each) > 1
    done = propose(folder)
    assert "producer_byte_rate of profile small: 20KiB -> 575KiB" in done.out
    assert "the largest that is recommended for the 3 entities that share it" in done.out
    assert max(each) == 575 * 1024
    assert path.read_text(encoding="utf-8").endswith(entries)
    assert (folder / "quotas" / "kafka-quotas.yaml").read_text(encoding="utf-8") == repository.replace("20KiB", "575KiB")
    rows = invoke("backtest", "quotas", "--traffic", f"3={LOG}", "--format", "json", cwd=folder).json()["verdicts"]
    assert not {row["verdict"] for row in rows} & {"throttled", "possible"}


def test_an_override_is_edited_where_it_stands_and_other_clusters_are_named(folder: Path) -> None:
    text = QUOTAS.replace("        consumer_byte_rate: 1GiB\n", "      overrides:\n        - clusters: [prod]\n"
                          "          quotas: {producer_byte_rate: 50KiB}\n")  # fmt: skip
    (folder / "quotas" / "test.yaml").write_text(CLUSTER.replace("prod", "test"), encoding="utf-8")
    path = write_quotas(folder, text)
    done = propose(folder, "--cluster", "prod")
    assert path.read_text(encoding="utf-8") == text.replace("50KiB", "575KiB")
    assert "also the value of" not in done.out
    done = propose(folder, "--cluster", "test")
    assert path.read_text(encoding="utf-8") == text.replace("50KiB", "575KiB").replace('"100KiB/s"', '"575KiB/s"')
    assert "also the value of" not in done.out, "prod has an override of its own"


def test_a_quota_that_no_manifest_declares_is_named_and_not_written(folder: Path) -> None:
    snapshot = {
        "format_version": "1.0",
        "cluster": {"name": None, "id": None, "kafka_version": "4.3"},
        "observed": {"at": "2026-11-21T13:00:00Z", "from": "broker"},
        "entities": [{"entity": {"user": "alice"}, "quotas": {"producer_byte_rate": 1024}}],
    }
    (folder / "now.json").write_text(json.dumps(snapshot), encoding="utf-8")
    path = write_quotas(folder, QUOTAS.replace("alice", "nobody"))
    before = path.read_bytes()
    done = propose(folder, "--current", "now.json")
    assert (
        "Warning: user=alice: producer_byte_rate is recommended as 575KiB, and was not written: the manifests do not" in done.out
    )
    assert path.read_bytes() == before


def test_a_value_that_is_computed_is_named_with_its_place(folder: Path) -> None:
    snapshot = {
        "format_version": "1.1",
        "cluster": {"name": None, "id": None, "kafka_version": "4.3"},
        "observed": {"at": "2026-11-21T13:00:00Z", "from": "broker"},
        "entities": [],
        "brokers": [1, 2, 3],
    }
    (folder / "now.json").write_text(json.dumps(snapshot), encoding="utf-8")
    path = write_quotas(folder, QUOTAS.replace('"100KiB/s"', "{clusterTotal: 300KiB}"))
    before = path.read_bytes()
    done = propose(folder, "--current", "now.json")
    assert done.code == 0, done.err
    assert "has clusterTotal: 300KiB, from which the value is computed. Change it there" in done.out
    assert path.read_bytes() == before


def test_a_read_only_file_is_refused_before_anything_is_written(folder: Path) -> None:
    first = write_quotas(folder, name="a.yaml")
    second = write_quotas(folder, QUOTAS.replace("alice", "bob").replace("zoe", "zed"), name="b.yaml")
    second.chmod(0o444)
    done = propose(folder)
    assert done.code == 1
    assert "quotas/b.yaml is read-only. Nothing was written" in done.err
    assert first.read_text(encoding="utf-8") == QUOTAS


def test_a_link_out_of_the_repository_is_refused_and_one_inside_is_followed(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "real.yaml"
    elsewhere.write_text(QUOTAS, encoding="utf-8")
    link = folder / "quotas" / "q.yaml"
    link.symlink_to(elsewhere)
    done = invoke("backtest", "quotas/q.yaml", "--traffic", f"3={LOG}", "--propose", cwd=folder)
    assert (done.code, elsewhere.read_text(encoding="utf-8")) == (1, QUOTAS)
    assert f"quotas/q.yaml is a symbolic link to {elsewhere}, outside of the repository. Nothing was written" in done.err
    link.unlink()
    inside = write_quotas(folder, name="real.txt")
    link.symlink_to("real.txt")
    assert propose(folder).code == 0
    assert link.is_symlink()
    assert inside.read_text(encoding="utf-8") == QUOTAS.replace('"100KiB/s"', '"575KiB/s"')


def test_a_file_that_changes_meanwhile_is_refused(folder: Path) -> None:
    from reconciler.errors import FileAccessError
    from reconciler.model import Entity, ProposedValue, Span, ValueProposals
    from reconciler.workflows import ManifestFiles, load_intent

    path = write_quotas(folder)
    files = ManifestFiles(load_intent([str(folder / "quotas")], cluster=None))
    alice = Entity.of({"user": "alice"})
    value = ProposedValue(
        source=Span(file=str(path), line=8, column=29),
        key="producer_byte_rate",
        before="100KiB/s",
        after="1MiB",
        entities=(alice,),
    )
    (revision,) = files.revise(ValueProposals(values=(value,)))
    assert b'"1MiB"' in revision.after
    path.write_text(QUOTAS + "# one more line\n", encoding="utf-8")
    with pytest.raises(FileAccessError, match=r"changed while the backtest ran\. Nothing was written"):
        files.revise(ValueProposals(values=(value,)))
