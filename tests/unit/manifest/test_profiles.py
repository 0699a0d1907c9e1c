"""Profiles: values that entries name, with the changes of clusters, entries and overrides on top of them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from reconciler.manifest.client_quotas import MOST_ENTITIES
from reconciler.manifest.desired import DesiredResult, desired_state
from reconciler.manifest.documents import ClientQuotasDocument, ClusterDocument, RepositoryDocument
from reconciler.manifest.reading import read_documents
from reconciler.model.entity import DEFAULT, Entity
from tests.support.manifests import cluster, quotas, repository

ALICE, BOB = Entity.of({"user": "alice"}), Entity.of({"user": "bob"})
GOLD = {"gold": {"quotas": {"producer_byte_rate": 20, "consumer_byte_rate": 40}}}


def declared(
    entries: str, repository_profiles: Mapping[str, object] | None = None, cluster_profiles: Mapping[str, object] | None = None
) -> DesiredResult:
    spec = {} if cluster_profiles is None else {"profiles": cluster_profiles}
    text = "---\n".join([repository(profiles=repository_profiles or GOLD), cluster(**spec), entries])
    content = read_documents(text.encode(), "all.yaml")
    assert content.findings == ()
    (rules,) = (document for document in content.documents if isinstance(document, RepositoryDocument))
    (made,) = (document for document in content.documents if isinstance(document, ClusterDocument))
    documents = [document for document in content.documents if isinstance(document, ClientQuotasDocument)]
    return desired_state(documents, made.spec, profiles=(rules.profiles, made.spec.profiles))


def entry(match: Mapping[str, object], **fields: object) -> str:
    text = quotas()
    return text.replace('"quotas": []', f'"quotas": [{json.dumps({"match": match, **fields})}]')


def test_a_profile_that_does_not_exist_is_one_error() -> None:
    (finding,) = declared(entry({"user": ["alice", "bob"]}, profile="low")).findings

    assert (finding.id, str(finding.message)) == ("unknown-profile", "the profile 'low' does not exist. Known: 'gold'")


def test_a_list_of_names_declares_an_entity_for_each_pair() -> None:
    names = {"user": ["alice", "bob"], "client-id": ["x", {"default": True}]}
    result = declared(entry(names, quotas={"producer_byte_rate": 1}))

    assert set(result.state.values()) == {
        Entity.of({"user": user, "client-id": client}) for user in ("alice", "bob") for client in ("x", DEFAULT)
    }
    places = {declared.source for declared in result.state.entities.values()}
    assert len(places) == 2, "each at its client-id, the last list"


def test_an_entry_names_no_more_than_ten_thousand_entities() -> None:
    def names(users: int, clients: int) -> str:
        match = {"user": [f"u{n}" for n in range(users)], "client-id": [f"c{n}" for n in range(clients)]}
        return entry(match, quotas={"producer_byte_rate": 1})

    assert MOST_ENTITIES == 10_000
    assert len(declared(names(100, 100)).state.entities) == 10_000
    content = read_documents(names(101, 100).encode(), "q.yaml")
    assert [finding.id for finding in content.findings] == ["too-many-entities"]


_KEYS = st.sampled_from(["producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"])
_VALUES = st.dictionaries(_KEYS, st.integers(1, 1000), max_size=4)
_CHANGES = st.dictionaries(_KEYS, st.none() | st.integers(1, 1000), max_size=4)


@given(profile=_VALUES, of_cluster=_CHANGES, own=_VALUES, override=_CHANGES)
def test_the_values_are_those_of_all_layers_one_over_the_other(
    profile: dict[str, int], of_cluster: dict[str, int | None], own: dict[str, int], override: dict[str, int | None]
) -> None:
    profiles = {"used": {"quotas": profile}}
    overrides = [{"clusters": ["prod"], "quotas": override}]
    text = entry({"user": "alice"}, profile="used", quotas=own, overrides=overrides)
    expected: dict[str, int | None] = {}
    for layer in (profile, of_cluster, own, override):
        expected.update(layer)
    expected = {key: value for key, value in expected.items() if value is not None}

    result = declared(text, profiles, {"used": {"quotas": of_cluster}})

    assert result.findings == ()
    assert result.state.entities.keys() == {ALICE}
    assert {key.value: quota.value for key, quota in result.state.entities[ALICE].quotas.items()} == expected
