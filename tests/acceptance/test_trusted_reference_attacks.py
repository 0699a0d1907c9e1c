"""Attacks on ``--trusted-ref`` from a pull request: links, ``..``, and files that options name. Each succeeded once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import user
from tests.support.bad_servers import serving
from tests.support.command import run
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas, snapshot

ALICE = ({"user": "alice"}, {"producer_byte_rate": 1000})
LOGIN = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
    'sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="ci" password="secret";\n'
)


@pytest.fixture
def merged(tmp_path: Path) -> GitRepository:
    """A repository whose main has one guarded cluster in ``quotas``, and a pull request begun on top of it."""
    made = GitRepository(tmp_path / "repository")
    made.write("quotas/prod.yaml", cluster(clusterId="c1", connection={"bootstrapServers": ["127.0.0.1:1"]}, prune="never"))
    made.write("quotas/quotas.yaml", quotas(ALICE))
    made.write(".gitignore", "client.properties\n")
    made.commit()
    made.branch()
    (tmp_path / "client.properties").write_text(LOGIN)
    (tmp_path / "live.json").write_text(snapshot({user("alice"): {"producer_byte_rate": 5.0}}))
    return made


@pytest.mark.parametrize("command", [("plan",), ("drift",), ("apply", "--auto-approve"), ("resolve", "--all")])
def test_a_link_to_another_repository_at_the_path_sends_the_password_nowhere(
    merged: GitRepository, command: tuple[str, ...]
) -> None:
    taken: list[str] = []
    with serving(lambda _: taken.append("theirs")) as theirs:
        other = GitRepository(merged.folder.parent / "other")
        other.write("prod.yaml", cluster(connection={"bootstrapServers": [f"127.0.0.1:{theirs}"]}))
        other.write("quotas.yaml", quotas(ALICE))
        other.commit()
        merged.git("rm", "-rq", "quotas")
        (merged.folder / "quotas").symlink_to(other.folder)
        merged.commit()
        given = ("--trusted-ref", "main", "--command-config", "../client.properties")
        done = run(*command, *given, "quotas", cwd=merged.folder)
    assert taken == []
    assert (done.code, done.err.count("\n")) == (64, 1)
    assert "'quotas' leads out of the git repository" in done.err


def test_a_repository_elsewhere_is_not_read_for_the_one_of_the_working_directory(merged: GitRepository) -> None:
    other = GitRepository(merged.folder.parent / "other")
    other.write("prod.yaml", cluster())
    other.commit()
    done = run("plan", str(other.folder), "--trusted-ref", "main", "--current", "../live.json", cwd=merged.folder)
    assert (done.code, done.err.count("\n")) == (64, 1)
    assert "of the working directory, so it has no state at a reference" in done.err
    above = run("plan", "other", "--trusted-ref", "main", "--current", "live.json", cwd=merged.folder.parent)
    assert above.code == 0, above.err


def test_a_linked_work_tree_of_the_same_repository_is_planned_against_it(merged: GitRepository) -> None:
    merged.write("quotas/quotas.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": 1100})))
    merged.commit()
    merged.git("worktree", "add", "-q", "--detach", "../proposed", "pull-request")
    merged.git("checkout", "-q", "main")
    done = run(
        "plan", "../proposed/quotas", "--trusted-ref", "main", "--current", "../live.json", "--format", "json", cwd=merged.folder
    )
    assert done.code == 0, done.err
    assert [change["keys"]["producer_byte_rate"]["after"] for change in done.json()["changes"]] == [1100]


def test_a_link_inside_the_repository_at_the_path_counts_after_merge(merged: GitRepository) -> None:
    merged.merge({"drafts/prod.yaml": cluster(prune="always"), "drafts/q.yaml": quotas(ALICE)})
    merged.git("rm", "-rq", "quotas")
    (merged.folder / "quotas").symlink_to("drafts")
    merged.commit()
    done = run("plan", "quotas", "--trusted-ref", "main", "--current", "../live.json", cwd=merged.folder)
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert "'quotas' is a symbolic link here, and main does not have it" in done.err
    merged.git("branch", "-f", "main")
    after = run("plan", "quotas", "--trusted-ref", "main", "--current", "../live.json", cwd=merged.folder)
    assert "symbolic link" not in after.err


def test_a_link_of_the_commit_does_not_lead_out_of_where_it_is_read(merged: GitRepository, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (temporary / "outside.yaml").write_text(cluster("outside", prune="always"))
    merged.git("checkout", "-q", "main")
    (merged.folder / "quotas" / "here").symlink_to(".")
    (merged.folder / "quotas" / "out.yaml").symlink_to("here/../../outside.yaml")
    merged.commit()
    merged.git("checkout", "-q", "-B", "pull-request")
    options = ("--trusted-ref", "main", "--cluster", "outside", "--current", "../live.json")
    done = run("plan", "quotas", *options, cwd=merged.folder, env={"TMPDIR": str(temporary)})
    assert done.code == 1
    assert "main:quotas/out.yaml" in done.err


@pytest.mark.parametrize("properties", ["certs/../client.properties", "./certs/../client.properties"])
def test_steps_back_behind_a_link_do_not_choose_the_properties(merged: GitRepository, properties: str) -> None:
    connection = {"bootstrapServers": ["127.0.0.1:1"], "properties": properties}
    merged.merge({"quotas/prod.yaml": cluster(connection=connection), "quotas/certs/readme.txt": "certificates\n"})
    (merged.folder / "quotas/client.properties").write_text("security.protocol=NONSENSE-OF-THE-JOB\n")
    own = run("plan", "quotas", "--trusted-ref", "main", cwd=merged.folder)
    assert own.code == 64
    assert "NONSENSE-OF-THE-JOB" in own.err
    merged.git("rm", "-rq", "quotas/certs")
    merged.write("quotas/mine/below/readme.txt", "nothing\n")
    merged.write("quotas/mine/client.properties", "security.protocol=PLAINTEXT\n")
    merged.git("add", "-f", "quotas/mine/client.properties")
    (merged.folder / "quotas/certs").symlink_to("mine/below")
    merged.commit()
    done = run("plan", "quotas", "--trusted-ref", "main", cwd=merged.folder)
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert "goes back with '..' behind a symbolic link" in done.err


EMPTY = snapshot({user("alice"): {"producer_byte_rate": 1000.0}})


@pytest.mark.parametrize("command", [("plan", "quotas"), ("drift", "quotas"), ("resolve", "quotas", "--name", "user=alice")])
def test_a_recorded_state_that_git_tracks_is_the_reference_s(merged: GitRepository, command: tuple[str, ...]) -> None:
    given = ("--current", "live.json", "--trusted-ref", "main", "--format", "json")
    merged.merge({"live.json": (merged.folder.parent / "live.json").read_text()})
    merged.commit()
    before = run(*command, *given, cwd=merged.folder)
    merged.write("live.json", EMPTY)
    merged.commit()
    after = run(*command, *given, cwd=merged.folder)
    assert (before.code, after.code) == (0, 0), after.err
    kept = [{key: value for key, value in done.json().items() if key not in ("source", "at")} for done in (before, after)]
    assert kept[0] == kept[1]
    merged.write("own.json", EMPTY)
    merged.git("add", "own.json")
    new = run(*command, "--current", "own.json", *given[2:], cwd=merged.folder)
    assert "'own.json' is not in main" in new.err + new.out


def test_a_baseline_that_git_tracks_is_the_reference_s(merged: GitRepository) -> None:
    merged.merge({"baseline.json": "no baseline\n"})
    merged.write("baseline.json", "{}\n")
    merged.commit()
    options = ("--baseline", "baseline.json", "--cluster", "prod", "--current", "../live.json", "--trusted-ref", "main")
    done = run("drift", "quotas", *options, cwd=merged.folder)
    assert done.code != 0
    assert "Expecting value" in done.err
    merged.write("mine.json", "{}\n")
    merged.git("add", "mine.json")
    new = run("drift", "quotas", "--baseline", "mine.json", *options[2:], cwd=merged.folder)
    assert new.code == 3
    assert "'mine.json' is not in main" in new.err


@pytest.mark.parametrize(
    "command",
    [
        ("report", "quotas", "--current", "../live.json", "--run", "given.json"),
        ("revert", "given.json", "quotas", "--auto-approve"),
        ("apply", "quotas", "--backtest", "given.json", "--auto-approve"),
    ],
)
def test_other_files_that_git_tracks_have_to_be_the_reference_s(merged: GitRepository, command: tuple[str, ...]) -> None:
    merged.merge({"given.json": "{}\n"})
    merged.write("given.json", "[]\n")
    merged.commit()
    done = run(*command, "--trusted-ref", "main", cwd=merged.folder)
    assert (done.code, done.err.count("\n")) == (3, 1), done.err
    assert "'given.json' differs from main" in done.err


MAPPING = """\
apiVersion: kafka-quotas/v1
kind: TrafficMapping
spec:
  columns:
    ts: {{column: time}}
    broker: {{constant: 1}}
    user: {{column: user}}
    kind: {{constant: produce}}
    amount: {{column: size, unit: {unit}}}
"""
ROWS = "time,user,size\n" + "".join(f"2026-11-21 13:00:{second:02},alice,1000\n" for second in range(60))


def backtest(repo: GitRepository, *options: str):
    given = ("--trusted-ref", "main", "--mapping", "mapping.yaml", "--fail-on", "warning", "--format", "json")
    return run("backtest", "quotas", *given, *options, cwd=repo.folder)


def test_the_mapping_of_a_backtest_is_the_reference_s(merged: GitRepository) -> None:
    merged.merge({"mapping.yaml": MAPPING.format(unit="KiB")})
    (merged.folder.parent / "traffic.csv").write_text(ROWS)
    merged.write("mapping.yaml", MAPPING.format(unit="B"))
    merged.commit()
    done = backtest(merged, "--traffic", "../traffic.csv")
    assert done.code == 1, done.err
    assert [(one["bucket"], one["verdict"]) for one in done.json()["verdicts"]] == [({"user": "alice"}, "throttled")]


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        ("change", "'traffic/b.csv' differs from main"),
        ("add", "'traffic/c.csv' is not in main"),
        ("remove", "'traffic/b.csv' is missing here, and main has it"),
        ("link", "'traffic' is reached through a symbolic link"),
        ("link to one", "'traffic/b.csv' is reached through a symbolic link"),
    ],
)
def test_traffic_that_git_tracks_has_to_be_the_reference_s(merged: GitRepository, attack: str, said: str) -> None:
    merged.merge({"mapping.yaml": MAPPING.format(unit="KiB"), "traffic/a.csv": ROWS, "traffic/b.csv": ROWS, "o/a.csv": ROWS})
    if attack == "change":
        merged.write("traffic/b.csv", "time,user,size\n")
    elif attack == "add":
        merged.write("traffic/c.csv", ROWS)
    elif attack == "remove":
        merged.git("rm", "-q", "traffic/b.csv")
    elif attack == "link":
        merged.git("rm", "-rq", "traffic")
        (merged.folder / "traffic").symlink_to("o")
    else:
        merged.git("rm", "-q", "traffic/b.csv")
        (merged.folder / "traffic/b.csv").symlink_to("../o/a.csv")
    merged.commit()
    done = backtest(merged, "--traffic", "traffic")
    assert (done.code, done.err.count("\n")) == (3, 1), done.err
    assert said in done.err
