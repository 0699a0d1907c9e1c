"""From paths to a desired state: which cluster, what is complete, and inputs that must never break the loader."""

import os

import pytest

from reconciler.errors import UsageError
from reconciler.model.cluster import ClusterSpec, Prune
from reconciler.workflows.load import desired_for, load_manifests
from tests.support.spans import span_of

ENTRY = "    - match: {user: %s}\n      quotas: {request_percentage: 5}\n"
QUOTAS = f"apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec:\n  quotas:\n{ENTRY}"
CLUSTER = "apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {name: %s}\nspec: {prune: always}\n"
REPOSITORY = "apiVersion: kafka-quotas/v1\nkind: Repository\nspec: {}\n"


@pytest.fixture
def write(tmp_path):
    def write_file(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write_file


def users(state):
    return sorted(str(entity) for entity in state.entities)


def test_without_a_cluster_document_the_stand_in_never_prunes(tmp_path, write):
    write("a.yaml", QUOTAS % "a")
    spec, state, findings = desired_for(load_manifests([str(tmp_path)]), None)

    assert spec == ClusterSpec()
    assert spec.prune is Prune.NEVER
    assert (users(state), state.complete, findings) == (["user=a"], True, ())


def test_of_several_clusters_one_must_be_named(tmp_path, write):
    write("eu.yaml", CLUSTER % "eu")
    write("us.yaml", CLUSTER % "us")
    loaded = load_manifests([str(tmp_path)])

    assert desired_for(loaded, "us")[0].name == "us"
    with pytest.raises(UsageError, match="eu, us"):
        desired_for(loaded, None)
    with pytest.raises(UsageError, match="no manifest declares cluster 'uk'"):
        desired_for(loaded, "uk")


def test_files_are_planned_alone_and_folders_whole(tmp_path, write):
    one = write("a.yaml", QUOTAS % "a")
    write("b.yaml", QUOTAS % "b")

    _, some, _ = desired_for(load_manifests([one]), None)
    _, everything, _ = desired_for(load_manifests([str(tmp_path)]), None)
    _, both, _ = desired_for(load_manifests([str(tmp_path), one]), None)
    assert (users(some), some.complete) == (["user=a"], False)
    assert (users(everything), everything.complete) == (["user=a", "user=b"], True)
    assert (users(both), both.complete) == (["user=a", "user=b"], False)


@pytest.mark.parametrize(
    ("path", "expected", "complete"), [(".", ["a", "b"], True), ("x", ["a"], False), ("y/b.yaml", ["b"], False)]
)
def test_below_a_root_a_path_filters_and_a_filtered_plan_is_not_complete(tmp_path, write, path, expected, complete):
    write("kafka-quotas.yaml", REPOSITORY)
    write("x/a.yaml", QUOTAS % "a")
    write("y/b.yaml", QUOTAS % "b")
    loaded = load_manifests([str(tmp_path / path)])
    _, state, _ = desired_for(loaded, None)

    assert loaded.root == str(tmp_path)
    assert (users(state), state.complete) == ([f"user={name}" for name in expected], complete)


def test_a_file_of_that_name_that_holds_only_quotas_is_no_root(tmp_path, write):
    write("kafka-quotas.yaml", QUOTAS % "User:a")
    write("x/a.yaml", QUOTAS % "b")
    loaded = load_manifests([str(tmp_path / "x")])

    assert loaded.root is None
    assert loaded.complete


def test_a_file_name_that_is_not_unicode_is_read_and_shown_escaped(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.yaml"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(descriptor, (QUOTAS % "User:a").encode())
    os.close(descriptor)

    (finding,) = load_manifests([str(tmp_path)]).findings
    assert span_of(finding).file.endswith("\udcff.yaml")


def test_links_between_the_given_folders_end(tmp_path, write):
    write("in/a.yaml", QUOTAS % "a")
    write("out/b.yaml", QUOTAS % "b")
    (tmp_path / "in" / "to-out").symlink_to(tmp_path / "out")
    (tmp_path / "out" / "to-in").symlink_to(tmp_path / "in")
    loaded = load_manifests([str(tmp_path / "in"), str(tmp_path / "out")])

    assert len(loaded.files) == 2
    assert {one.id for one in loaded.findings} == {"symlink-loop"}


@pytest.mark.parametrize("repository", [True, False])
def test_a_link_out_of_the_tree_is_reported_and_not_followed(tmp_path, write, repository):
    write("in/a.yaml", QUOTAS % "a")
    write("outside/b.yaml", QUOTAS % "b")
    write("in-2/c.yaml", QUOTAS % "c")
    if repository:
        write("in/kafka-quotas.yaml", "apiVersion: kafka-quotas/v1\nkind: Repository\nspec: {}\n")
    for name, target in (("folder", "outside"), ("file.yaml", "outside/b.yaml"), ("up", "outside/.."), ("near", "in-2")):
        (tmp_path / "in" / name).symlink_to(tmp_path / target)
    (tmp_path / "in" / "text").symlink_to(tmp_path / "outside" / "b.yaml")
    loaded = load_manifests([str(tmp_path / "in")])

    assert sorted((one.id, one.severity.value, span_of(one).file.rsplit("/", 1)[1]) for one in loaded.findings) == [
        ("link-out-of-tree", "error", name) for name in ("file.yaml", "folder", "near", "up")
    ]
    assert not any(file.endswith(("b.yaml", "c.yaml")) for file in loaded.files)


def test_a_root_that_is_a_link_and_links_within_it_are_followed(tmp_path, write):
    write("..data/a.yaml", QUOTAS % "a")
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")
    (tmp_path.parent / f"{tmp_path.name}-link").symlink_to(tmp_path)
    loaded = load_manifests([str(tmp_path.parent / f"{tmp_path.name}-link")])

    assert ([file.rsplit("/", 1)[1] for file in loaded.files], loaded.findings) == (["a.yaml"], ())
