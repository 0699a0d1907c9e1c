"""What manifests say about the cluster and the entity that are altered by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.workflows.connect import load_target
from tests.builders import client, user
from tests.support.git_repository import GitRepository

CLUSTER = """apiVersion: kafka-quotas/v1
kind: Cluster
metadata: {{name: {name}}}
spec:
  prune: never
  scope: {{include: [{scope}]}}
"""
QUOTAS = """apiVersion: kafka-quotas/v1
kind: ClientQuotas
spec:
  quotas:
    - match: {user: alice}
      quotas: {producer_byte_rate: 1GB}
"""
EVERY_USER, BOB = "{user: {any: true}}", "{user: bob}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER.format(name="prod", scope=EVERY_USER))
    (tmp_path / "alice.yaml").write_text(QUOTAS)
    (tmp_path / "kafka-quotas.yaml").write_text("apiVersion: kafka-quotas/v1\nkind: Repository\nspec: {}\n")
    return tmp_path


def place(target: Any, entity: object) -> str | None:
    owned = target.managed_at(entity)
    return None if owned is None else Path(str(owned.place)).name


def test_an_entity_is_found_where_it_is_declared_else_in_the_scope(folder: Path) -> None:
    target = load_target([str(folder)], cluster=None)

    assert (target.spec.name, target.managed) == ("prod", True)
    assert place(target, user("alice")) == "alice.yaml:5:14"
    assert place(target, user("bob")) == "cluster.yaml:6:10"
    assert place(target, client("app")) is None


def test_without_a_path_or_a_name_nothing_is_read_and_nothing_managed() -> None:
    target = load_target([], cluster=None)

    assert (target.managed, target.managed_at(user("alice")), target.spec.name) == (False, None, None)


def test_with_a_trusted_reference_its_scope_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = GitRepository(tmp_path)
    monkeypatch.chdir(tmp_path)
    git.write("cluster.yaml", CLUSTER.format(name="prod", scope=EVERY_USER))
    git.commit()
    git.branch()
    git.write("cluster.yaml", CLUSTER.format(name="prod", scope=BOB))
    git.commit()

    assert load_target([str(tmp_path)], cluster=None).managed_at(user("alice")) is None
    assert load_target([str(tmp_path)], cluster=None, trusted_ref="main").managed_at(user("alice")) is not None
