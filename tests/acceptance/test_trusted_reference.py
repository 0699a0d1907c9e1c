"""``--trusted-ref`` with real pull requests: what they change of connections, limits and owners counts only after merge."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import client, user
from tests.support.bad_servers import serving
from tests.support.command import Done, invoke
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas, repository, snapshot
from tests.support.schemas import valid

ALICE = ({"user": "alice"}, {"producer_byte_rate": 1000})
DEFAULT_USER = ({"user": {"default": True}}, {"producer_byte_rate": 5000})
SCOPE = {"include": [{"user": {"any": True}}]}
LIMITS = {"too-many-removals": {"percent": 10, "count": 0}}


@pytest.fixture
def merged(tmp_path: Path) -> GitRepository:
    """A repository whose main has one guarded cluster and one quota, and a pull request begun on top of it."""
    made = GitRepository(tmp_path / "repository")
    made.write(
        "clusters/prod.yaml",
        cluster(scope=SCOPE, guards=LIMITS, protected=[{"user": "root"}], connection={"bootstrapServers": ["127.0.0.1:1"]}),
    )
    made.write("quotas.yaml", quotas(ALICE))
    made.commit()
    made.branch()
    (tmp_path / "live.json").write_text(
        snapshot(
            {
                user("alice"): {"producer_byte_rate": 1000.0},
                user("root"): {"producer_byte_rate": 9.0},
                client("app"): {"consumer_byte_rate": 7.0},
            }
        )
    )
    return made


def plan(repo: GitRepository, *arguments: str) -> Done:
    done = invoke("plan", "--trusted-ref", "main", "--current", "../live.json", "--format", "json", *arguments, cwd=repo.folder)
    if done.code in (0, 2):
        valid(done.json(), "plan")
    return done


def tripped(done: Done) -> set[str]:
    return {guard["id"] for guard in done.json()["guards"] if guard["status"] == "needs-acceptance"}


def test_a_pull_request_that_changes_only_quotas_is_planned_with_no_word_about_trust(merged: GitRepository) -> None:
    merged.write("quotas.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": 1100})))
    merged.commit()
    done = plan(merged)
    assert done.code == 0, done.err
    assert [change["entity"] for change in done.json()["changes"]] == [{"user": "alice"}, {"user": "root"}]
    assert [note.partition(". ")[0] for note in done.json()["notes"]] == ["The cluster already differs from main in 1 limit"]


def test_a_limit_that_a_pull_request_lifts_still_holds(merged: GitRepository) -> None:
    merged.write("clusters/prod.yaml", cluster(scope=SCOPE, guards={"too-many-removals": {"percent": 100, "count": 99}}))
    merged.commit()
    done = plan(merged)
    assert {"too-many-removals", "protected-entity", "prune"} <= tripped(done)
    (guard,) = (g for g in done.json()["guards"] if g["id"] == "too-many-removals")
    assert guard["set_in"].startswith("main:clusters/prod.yaml:")
    notes = " ".join(done.json()["notes"])
    for word in ("guards of the Cluster manifest prod", "protected of", "connection of", "after merge"):
        assert word in notes


def test_a_violation_that_a_pull_request_accepts_itself_is_not_accepted(merged: GitRepository) -> None:
    accept = [{"guard": "default-entity", "until": "2099-01-01", "reason": "trust me"}]
    merged.write("clusters/prod.yaml", cluster(scope=SCOPE, accept=accept))
    merged.write("quotas.yaml", quotas(ALICE, DEFAULT_USER))
    merged.commit()
    assert "default-entity" in tripped(plan(merged))
    assert "default-entity" not in tripped(invoke("plan", "--current", "../live.json", "--format", "json", cwd=merged.folder))


def test_a_scope_that_a_pull_request_widens_does_not_hold_yet(merged: GitRepository) -> None:
    merged.write("clusters/prod.yaml", cluster())
    merged.write("quotas.yaml", quotas(ALICE, ({"client-id": "app"}, {"consumer_byte_rate": 1})))
    merged.commit()
    done = plan(merged)
    assert done.code == 1
    (finding,) = (f for f in done.json()["findings"] if f["severity"] == "error")
    assert finding["id"] == "outside-scope"
    assert finding["related"][0]["file"] == "main:clusters/prod.yaml"


def test_another_team_s_entity_cannot_be_taken_by_giving_it_to_oneself(merged: GitRepository) -> None:
    def owners(payments: str, search: str) -> str:
        return repository(
            owners={
                "payments": {"paths": ["payments/**"], "entities": [{"user": {"prefix": payments}}]},
                "search": {"paths": ["search/**"], "entities": [{"user": {"prefix": search}}]},
            }
        )

    merged.git("checkout", "-q", "main")
    merged.write("kafka-quotas.yaml", owners("payments-", "search-"))
    merged.git("rm", "-q", "quotas.yaml")
    merged.write("payments/q.yaml", quotas(({"user": "payments-api"}, {"producer_byte_rate": 1}), owner="payments"))
    merged.commit()
    merged.git("checkout", "-q", "-B", "pull-request")
    merged.write("kafka-quotas.yaml", owners("x-", "payments-"))
    merged.git("rm", "-q", "payments/q.yaml")
    merged.write("search/q.yaml", quotas(({"user": "payments-api"}, {"producer_byte_rate": 9}), owner="search"))
    merged.commit()
    assert invoke("validate", cwd=merged.folder).code == 0
    for command in (("validate",), ("plan", "--current", "../live.json")):
        done = invoke(*command, "--trusted-ref", "main", "--format", "json", cwd=merged.folder)
        assert done.code == 1
        assert any("payments-api" in f["message"] for f in done.json()["findings"] if f["severity"] == "error")


def test_a_pull_request_that_moves_the_root_does_not_make_a_part_the_whole(merged: GitRepository) -> None:
    merged.merge({"kafka-quotas.yaml": repository(), "teams/a/q.yaml": quotas(({"user": "bob"}, {"producer_byte_rate": 1}))})
    merged.git("rm", "-q", "kafka-quotas.yaml")
    merged.write("teams/a/cluster.yaml", cluster(scope=SCOPE, prune="always"))
    merged.git("rm", "-q", "clusters/prod.yaml")
    merged.commit()
    assert (
        invoke("plan", "teams/a", "--current", "../live.json", "--format", "json", cwd=merged.folder).json()["complete"] is True
    )
    done = plan(merged, "teams/a")
    assert done.code == 0, done.err
    assert done.json()["complete"] is False
    assert [c["action"] for c in done.json()["changes"]] == ["create"]


def test_a_cluster_that_only_the_pull_request_has_is_refused_by_plan_and_checked_by_validate(merged: GitRepository) -> None:
    merged.write("clusters/new.yaml", cluster("new", connection={"bootstrapServers": ["127.0.0.1:2"]}))
    merged.commit()
    done = plan(merged, "--cluster", "new")
    assert done.code == 3
    assert "cluster new is new: main has no Cluster manifest" in done.err
    checked = invoke("validate", "--trusted-ref", "main", "--cluster", "new", "--format", "json", cwd=merged.folder)
    assert checked.code == 0, checked.out
    assert "counts-after-merge" in {f["id"] for f in checked.json()["findings"]}


LOGIN = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
    'sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="ci" password="{}";\n'
)


@pytest.mark.parametrize("command", [("plan",), ("apply", "--auto-approve"), ("drift",)])
def test_no_connection_is_made_to_the_host_that_a_pull_request_names(merged: GitRepository, command: tuple[str, ...]) -> None:
    taken: list[str] = []
    with serving(lambda _: taken.append("ours")) as ours, serving(lambda _: taken.append("theirs")) as theirs:
        merged.merge({"clusters/prod.yaml": cluster(connection={"bootstrapServers": [f"127.0.0.1:{ours}"]})})
        merged.write("clusters/prod.yaml", cluster(connection={"bootstrapServers": [f"127.0.0.1:{theirs}"]}))
        merged.commit()
        done = invoke(*command, "--trusted-ref", "main", cwd=merged.folder)
        assert done.code == 1
        assert f"127.0.0.1:{ours}" in done.err
    assert set(taken) == {"ours"}


def connection_of(properties: str = "client.properties") -> str:
    return cluster(connection={"bootstrapServers": ["127.0.0.1:1"], "properties": properties})


def test_client_properties_are_those_of_the_trusted_reference(merged: GitRepository) -> None:
    merged.merge({"clusters/prod.yaml": connection_of(), "clusters/client.properties": "security.protocol=NONSENSE-OF-MAIN\n"})
    merged.write("clusters/client.properties", "security.protocol=PLAINTEXT\n")
    merged.commit()
    for extra in ((), ("--command-config", "clusters/client.properties")):
        done = invoke("plan", "--trusted-ref", "main", *extra, cwd=merged.folder)
        assert done.code == 64
        assert "NONSENSE-OF-MAIN" in done.err
        assert "main:" in done.err


def test_client_properties_that_a_pull_request_brings_are_refused(merged: GitRepository) -> None:
    merged.merge({"clusters/prod.yaml": connection_of()})
    merged.write("clusters/client.properties", LOGIN.format("secret-1"))
    merged.commit()
    for extra in ((), ("--command-config", "clusters/client.properties")):
        done = invoke("plan", "--trusted-ref", "main", *extra, cwd=merged.folder)
        assert done.code == 3
        assert "client.properties' is not in main" in done.err
        assert "secret-1" not in done.err + done.out


@pytest.mark.parametrize("place", ["clusters/client.properties", "../client.properties"])
def test_client_properties_that_the_job_itself_made_are_used(merged: GitRepository, place: str) -> None:
    merged.merge({"clusters/prod.yaml": connection_of(), ".gitignore": "client.properties\n"})
    merged.write(place, "security.protocol=NONSENSE-OF-THE-JOB\n")
    extra = ("--command-config", place) if place.startswith("..") else ()
    done = invoke("plan", "--trusted-ref", "main", *extra, cwd=merged.folder)
    assert done.code == 64
    assert "NONSENSE-OF-THE-JOB" in done.err


def test_a_link_of_the_pull_request_does_not_lead_the_job_to_another_file(merged: GitRepository) -> None:
    merged.merge({"clusters/prod.yaml": connection_of("secrets/client.properties")})
    merged.write("mine/client.properties", "security.protocol=PLAINTEXT\n")
    (merged.folder / "clusters" / "secrets").symlink_to("../mine")
    merged.commit()
    done = invoke("plan", "--trusted-ref", "main", cwd=merged.folder)
    assert done.code == 3
    assert "symbolic link" in done.err


def test_a_repository_inside_the_files_of_a_pull_request_is_not_the_one_that_is_trusted(merged: GitRepository) -> None:
    merged.git("checkout", "-q", "main")
    merged.git("mv", "clusters", "manifests")
    merged.git("mv", "quotas.yaml", "manifests/quotas.yaml")
    merged.commit()
    merged.git("checkout", "-q", "-B", "pull-request")
    evil = GitRepository(merged.folder.parent / "evil")
    evil.write("prod.yaml", cluster(prune="always"))
    evil.write("quotas.yaml", quotas(ALICE))
    evil.commit()
    merged.git("rm", "-rq", "manifests")
    merged.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(evil.folder), "manifests")
    merged.commit()
    done = plan(merged, "manifests")
    assert "protected-entity" in tripped(done)


def test_a_bare_repository_among_the_files_is_not_entered(merged: GitRepository) -> None:
    evil = GitRepository(merged.folder.parent / "evil")
    evil.write("prod.yaml", cluster(prune="always"))
    evil.commit()
    bare = merged.folder / "manifests"
    evil.git("clone", "-q", "--bare", str(evil.folder), str(bare))
    (bare / "config").write_text(f"[core]\n\tbare = false\n\tworktree = {bare}\n\trepositoryformatversion = 0\n")
    (bare / "prod.yaml").write_text(cluster(prune="always"))
    done = plan(merged, "manifests")
    assert done.code == 3
    assert "cluster prod is new: main has no Cluster manifest" in done.err
    inside = invoke("plan", "--trusted-ref", "main", "--current", "../../live.json", cwd=bare)
    assert inside.code == 3
    assert "cluster prod is new: main has no Cluster manifest" in inside.err


def test_a_reference_that_cannot_be_read_is_one_sentence(merged: GitRepository, tmp_path: Path) -> None:
    unknown = invoke("plan", "--trusted-ref", "origin/main", "--current", "../live.json", cwd=merged.folder)
    assert (unknown.code, unknown.err.count("\n")) == (1, 1)
    assert "git knows no commit 'origin/main'" in unknown.err
    option = invoke("plan", "--trusted-ref=--all", "--current", "../live.json", cwd=merged.folder)
    assert option.code == 64
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "q.yaml").write_text(quotas(ALICE))
    nowhere = invoke("plan", "--trusted-ref", "main", "--current", "../live.json", cwd=outside)
    assert (nowhere.code, nowhere.err.count("\n")) == (1, 1)
    assert "is not in a git work tree" in nowhere.err


def test_a_shallow_clone_that_lacks_the_reference_says_what_to_do(merged: GitRepository, tmp_path: Path) -> None:
    merged.commit("second")
    shallow = GitRepository(tmp_path / "shallow")
    shallow.git("fetch", "-q", "--depth", "1", f"file://{merged.folder}", "pull-request")
    shallow.git("checkout", "-q", "FETCH_HEAD")
    done = invoke("plan", "--trusted-ref", "main", "--current", "../live.json", cwd=shallow.folder)
    assert done.code == 1
    assert "shallow clone" in done.err
    assert "fetch-depth: 0" in done.err


def test_a_reference_whose_manifests_have_errors_is_not_trusted(merged: GitRepository) -> None:
    merged.merge({"clusters/prod.yaml": cluster(prune="sometimes")})
    merged.write("clusters/prod.yaml", cluster())
    merged.commit()
    done = plan(merged)
    assert done.code == 1
    assert "the manifests at main have errors" in done.err
    assert done.json()["findings"][0]["file"] == "main:clusters/prod.yaml"


def test_a_plan_behind_its_base_says_how_far(merged: GitRepository) -> None:
    merged.git("checkout", "-q", "main")
    merged.write("other.yaml", quotas(({"user": "bob"}, {"producer_byte_rate": 3})))
    merged.commit()
    merged.git("checkout", "-q", "pull-request")
    for option in ("--base", "--trusted-ref"):
        done = invoke("plan", option, "main", "--current", "../live.json", "--format", "json", cwd=merged.folder)
        assert any("behind main: 1 commit " in note for note in done.json()["notes"])
    merged.git("rebase", "-q", "main")
    assert plan(merged).json()["notes"] == []


def test_what_leaves_the_manifests_and_the_scope_together_is_named(merged: GitRepository) -> None:
    merged.write("clusters/prod.yaml", cluster(scope={"include": [{"user": "root"}]}, prune="never"))
    merged.git("rm", "-q", "quotas.yaml")
    merged.commit()
    done = invoke("plan", "--base", "main", "--current", "../live.json", "--format", "json", cwd=merged.folder)
    assert done.code == 0, done.err
    assert done.json()["changes"] == []
    (note,) = done.json()["notes"]
    assert note.startswith("Forgotten, not removed: user=alice (declared at main)")
