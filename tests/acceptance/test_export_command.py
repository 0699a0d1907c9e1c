"""Adopting a real cluster: ``export``, then ``validate`` and ``plan`` of what it wrote, as a user runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import Done, invoke
from tests.support.schemas import valid

AWKWARD = [
    '"',
    "'",
    "a\nb",
    "on",
    "0123",
    "null",
    "<default>",
    "%40",
    "😀",
    " x ",
    "~",
    "- x",
    "a: b",
    "\u2028",
    "# c",
    "\t",
    "n" * 2000,
]


def test_export_of_nowhere_writes_nothing(tmp_path):
    done = invoke("export", "--folder", "q", cwd=tmp_path)

    assert done.code == 64
    assert "--bootstrap-server" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["mine.txt", ".hidden"])
def test_export_into_a_folder_that_is_not_empty_is_refused_before_anything_is_read(tmp_path, content):
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / content).write_text("mine")
    done = invoke("export", "--bootstrap-server", "127.0.0.1:1", "--folder", "q", cwd=tmp_path)

    assert done.code == 1
    assert "--overwrite" in done.err
    assert [path.name for path in (tmp_path / "q").iterdir()] == [content]


def seed(sandbox: Sandbox) -> dict[raw_quotas.RawEntity, dict[str, float]]:
    """All ten shapes, and awkward names in every place that has a name."""
    state: dict[raw_quotas.RawEntity, dict[str, float]] = {
        frozenset({("user", None)}): {"producer_byte_rate": 5242880.0},
        frozenset({("client-id", None)}): {"consumer_byte_rate": 1500.0},
        frozenset({("user", None), ("client-id", None)}): {"request_percentage": 12.5},
        frozenset({("user", None), ("client-id", "app")}): {"controller_mutation_rate": 0.1},
        frozenset({("user", "alice"), ("client-id", None)}): {"request_percentage": 1e-5},
        frozenset({("ip", None)}): {"connection_creation_rate": 100.0},
        frozenset({("ip", "127.0.0.1")}): {"connection_creation_rate": 50.0},
        frozenset({("ip", "localhost")}): {"connection_creation_rate": 60.0},
    }
    for number, name in enumerate(AWKWARD):
        rate = {"producer_byte_rate": 1048576.0 * (number + 1)}
        state[frozenset({("user", name)})] = rate
        state[frozenset({("client-id", name)})] = rate
        state[frozenset({("user", name), ("client-id", name)})] = rate
    raw_quotas.alter(sandbox.bootstrap_servers, state)
    return state


def export(sandbox: Sandbox, folder: Path, *arguments: str) -> Done:
    return invoke("export", "--bootstrap-server", sandbox.bootstrap_servers, *arguments, cwd=folder)


@pytest.mark.kafka
def test_exporting_again_replaces_what_export_wrote_and_nothing_else(tmp_path, clean_kafka):
    seed(clean_kafka)
    assert export(clean_kafka, tmp_path, "--folder", "q").code == 0
    (tmp_path / "q" / "mine.txt").write_text("mine")
    raw_quotas.remove_all(clean_kafka.bootstrap_servers)
    raw_quotas.alter(clean_kafka.bootstrap_servers, {frozenset({("user", "bob")}): {"producer_byte_rate": 1.0}})

    refused = export(clean_kafka, tmp_path, "--folder", "q")
    assert refused.code == 1
    done = export(clean_kafka, tmp_path, "--folder", "q", "--overwrite")
    assert done.code == 0, done.err
    assert sorted(path.name for path in (tmp_path / "q").iterdir()) == [".schemas", "cluster.yaml", "mine.txt", "users.yaml"]
    assert "bob" in (tmp_path / "q" / "users.yaml").read_text()


@pytest.mark.kafka
def test_the_exported_cluster_is_never_pruned_and_named_by_its_id(tmp_path, clean_kafka):
    done = export(clean_kafka, tmp_path, "--folder", "q", "--format", "json")
    document = done.json()
    valid(document, "findings")
    text = (tmp_path / "q" / "cluster.yaml").read_text()

    assert "prune: never" in text
    assert f'bootstrapServers: ["{clean_kafka.bootstrap_servers}"]' in text
    assert text.startswith("# yaml-language-server: $schema=.schemas/cluster.v1.schema.json\n")
    assert (tmp_path / "q" / ".schemas" / "cluster.v1.schema.json").is_file()
