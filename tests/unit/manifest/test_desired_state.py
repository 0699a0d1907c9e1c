"""Documents and a cluster into a desired state: overlays, claims, scope, clusters."""

import pytest

from reconciler.manifest.desired import desired_state
from reconciler.manifest.documents import ClientQuotasDocument
from reconciler.manifest.reading import read_documents
from reconciler.model.cluster import ClusterSpec
from reconciler.model.entity import Entity

GOLD = ClusterSpec(name="prod-eu", labels={"tier": "gold"})
IRON = ClusterSpec(name="test", labels={"tier": "iron"})
LABEL = "{labels: {tier: gold}}"
ALICE = Entity.of({"user": "alice"})


def document(*entries, clusters=None, file="q.yaml"):
    chosen = f"  clusters: {clusters}\n" if clusters else ""
    text = f"apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec:\n{chosen}  quotas:\n" + "".join(
        f"    - {e}\n" for e in entries
    )
    content = read_documents(text.encode(), file)
    assert content.findings == ()
    (made,) = content.documents
    assert isinstance(made, ClientQuotasDocument)
    return made


def entry(overrides=""):
    extra = f", overrides: [{overrides}]" if overrides else ""
    return f"{{match: {{user: alice}}, quotas: {{producer_byte_rate: 20, consumer_byte_rate: 40}}{extra}}}"


@pytest.mark.parametrize(
    ("clusters", "chosen"),
    [
        (None, ["prod-eu", "test"]),
        ("[prod-eu]", ["prod-eu"]),
        ("[test, prod-eu]", ["prod-eu", "test"]),
        ("{labels: {tier: gold}}", ["prod-eu"]),
        ("{labels: {tier: gold, zone: x}}", []),
    ],
)
def test_a_document_is_for_the_clusters_that_it_names(clusters, chosen):
    documents = [document(entry(), clusters=clusters)]

    assert [c.name for c in (GOLD, IRON) if desired_state(documents, c).state.entities] == chosen


def test_an_override_is_merged_key_by_key_and_null_drops_a_key():
    documents = [
        document(
            entry(f"{{clusters: {LABEL}, quotas: {{producer_byte_rate: 50, consumer_byte_rate: null, request_percentage: 5}}}}")
        )
    ]

    assert desired_state(documents, GOLD).state.values() == {ALICE: {"producer_byte_rate": 50, "request_percentage": 5}}
    assert desired_state(documents, IRON).state.values() == {ALICE: {"producer_byte_rate": 20, "consumer_byte_rate": 40}}


def test_an_entity_that_loses_its_last_key_stays_declared_with_none():
    documents = [document(entry("{clusters: [prod-eu], quotas: {producer_byte_rate: null, consumer_byte_rate: null}}"))]
    state = desired_state(documents, GOLD).state

    assert state.entities[ALICE].quotas == {}
    assert state.values() == {}


def test_a_filter_leaves_a_part_that_is_not_complete_but_everything_is_checked():
    documents = [document(entry(), file="a.yaml"), document(entry(), file="b.yaml")]
    result = desired_state(documents, GOLD, shown_files={"b.yaml"}.__contains__)

    assert result.state.complete is False
    assert result.state.entities == {}
    assert [finding.id for finding in result.findings] == ["duplicate-entity"]
