"""Drift adopted in place: the values of the cluster, and every other character as it was."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.features.drift_requests.adoption import PROPOSED, Adoption, adopt
from reconciler.features.manifest_edits import write_revisions
from reconciler.model import Entity, Quotas
from reconciler.planning import compare
from reconciler.workflows import load_intent
from tests.builders import user

MIB = 1024 * 1024
ALICE, BOB, CAROL = user("alice"), user("bob"), user("carol")
CLUSTER = "apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {name: prod}\nspec: {prune: confirm}\n"
HEAD = "# ours\napiVersion: kafka-quotas/v1\nkind: ClientQuotas\nmetadata: {name: team}\nspec:\n  quotas:\n"
ENTRIES = """\
    # the batch jobs
    - match: {user: alice}
      quotas:
        producer_byte_rate: 10MiB   # agreed in May
        # reads little
        consumer_byte_rate: '5MiB'
      note: nightly
    - {match: {user: bob}, quotas: {producer_byte_rate: 1MiB, request_percentage: 50}}
"""
DECLARED: Mapping[Entity, Quotas] = {
    ALICE: {"producer_byte_rate": 10.0 * MIB, "consumer_byte_rate": 5.0 * MIB},
    BOB: {"producer_byte_rate": 1.0 * MIB, "request_percentage": 50.0},
}


def adopted(folder: Path, live: Mapping[Entity, Quotas], *, entries: str = ENTRIES, cluster: str = CLUSTER) -> Adoption:
    """The drift of a cluster that had what the entries declare, adopted."""
    (folder / "cluster.yaml").write_text(cluster)
    (folder / "quotas.yaml").write_text(HEAD + entries)
    intent = load_intent([str(folder)], cluster="prod")
    spec = intent.spec
    drift = compare(intent.desired, live, DECLARED, scope=spec.scope, prune=spec.prune).entities
    return adopt(intent, [each for each in drift if each.drift in PROPOSED])


def after(folder: Path, adoption: Adoption) -> str:
    write_revisions([each for each in adoption.revisions if each.before])
    return (folder / "quotas.yaml").read_text().removeprefix(HEAD)


def test_values_are_replaced_where_they_stand(tmp_path: Path) -> None:
    live = {ALICE: {"producer_byte_rate": 12.0 * MIB, "consumer_byte_rate": 6.0 * MIB}, BOB: DECLARED[BOB]}
    adoption = adopted(tmp_path, live)
    assert [each.entity for each in adoption.adopted] == [ALICE]
    assert after(tmp_path, adoption) == ENTRIES.replace("10MiB", "12MiB").replace("'5MiB'", "'6MiB'")


def test_a_key_that_the_cluster_lost_loses_its_line_and_one_that_it_got_has_one(tmp_path: Path) -> None:
    live = {
        ALICE: {"producer_byte_rate": 10.0 * MIB, "request_percentage": 20.0},
        BOB: {"request_percentage": 50.0, "consumer_byte_rate": 3.0 * MIB},
    }
    adoption = adopted(tmp_path, live)
    assert adoption.left == ()
    assert (
        after(tmp_path, adoption)
        == """\
    # the batch jobs
    - match: {user: alice}
      quotas:
        request_percentage: 20
        producer_byte_rate: 10MiB   # agreed in May
        # reads little
      note: nightly
    - {match: {user: bob}, quotas: {consumer_byte_rate: 3MiB, request_percentage: 50}}
"""
    )


def test_an_entity_that_is_gone_keeps_its_entry_with_no_quotas(tmp_path: Path) -> None:
    adoption = adopted(tmp_path, {})
    assert adoption.left == ()
    assert (
        after(tmp_path, adoption)
        == """\
    # the batch jobs
    - match: {user: alice}
      quotas: {}
        # reads little
      note: nightly
    - {match: {user: bob}, quotas: {}}
"""
    )


def test_an_entity_that_came_gets_a_file_beside_the_cluster_manifest(tmp_path: Path) -> None:
    hostile = user("@everyone: 'x'\n# y")
    adoption = adopted(tmp_path, {**DECLARED, CAROL: {"producer_byte_rate": 2.0 * MIB}, hostile: {"consumer_byte_rate": 1.0}})
    (made,) = adoption.revisions
    assert made.path == str(tmp_path / "found-on-prod-users.yaml")
    assert "  clusters: [prod]\n" in made.after.decode()
    assert "    - match: {user: carol}\n      quotas: {producer_byte_rate: 2MiB}\n" in made.after.decode()
    assert {each.entity for each in adoption.adopted} == {CAROL, hostile}


def test_a_value_of_two_clusters_becomes_an_override_for_this_one(tmp_path: Path) -> None:
    both = f"{CLUSTER}---\n{CLUSTER.replace('prod', 'test')}"
    live = {ALICE: {"producer_byte_rate": 12.0 * MIB}, BOB: DECLARED[BOB]}
    adoption = adopted(tmp_path, live, cluster=both)
    override = "overrides: [{clusters: [prod], quotas: {consumer_byte_rate: null, producer_byte_rate: 12MiB}}]"
    assert after(tmp_path, adoption) == ENTRIES.replace("      quotas:\n", f"      {override}\n      quotas:\n", 1)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ("    - {match: {user: [alice, bob]}, quotas: {producer_byte_rate: 10MiB}}\n", "the entry names other entities, too"),
        (
            """\
    - match: {user: alice}
      quotas: {producer_byte_rate: 10MiB}
      overrides: [{clusters: [prod], quotas: {consumer_byte_rate: 1MiB}}]
""",
            "an override of its entry is for this cluster already",
        ),
        (
            "    - match: {user: alice}\n      quotas: {producer_byte_rate: {value: 10MiB, until: 2099-01-01}}\n",
            "producer_byte_rate is computed or expires",
        ),
    ],
)
def test_what_needs_a_hand_is_left_with_the_reason(tmp_path: Path, entries: str, reason: str) -> None:
    live = {ALICE: {"producer_byte_rate": 9.0 * MIB}}
    adoption = adopted(tmp_path, live, entries=entries)
    assert reason in [why for each, why in adoption.left if each.entity == ALICE]
    assert ALICE not in [each.entity for each in adoption.adopted]
