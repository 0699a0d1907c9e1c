"""Documents and a cluster into a desired state: overlays, claims, scope, clusters."""

import pytest

from reconciler.manifest.desired import cluster_findings, desired_state
from reconciler.manifest.documents import ClientQuotasDocument, ClusterDocument
from reconciler.manifest.reading import read_documents
from reconciler.model.cluster import ClusterSpec, Scope
from reconciler.model.entity import Entity
from reconciler.model.selector import MatchKind, Selector, TypeMatch
from tests.support.spans import span_of

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


def test_without_any_cluster_only_documents_for_every_cluster_count():
    documents = [document(entry(), clusters="[prod-eu]"), document("{match: {user: bob}, quotas: {producer_byte_rate: 1}}")]

    assert list(desired_state(documents, ClusterSpec()).state.entities) == [Entity.of({"user": "bob"})]


def test_an_override_is_merged_key_by_key_and_null_drops_a_key():
    documents = [
        document(
            entry(f"{{clusters: {LABEL}, quotas: {{producer_byte_rate: 50, consumer_byte_rate: null, request_percentage: 5}}}}")
        )
    ]

    assert desired_state(documents, GOLD).state.values() == {ALICE: {"producer_byte_rate": 50, "request_percentage": 5}}
    assert desired_state(documents, IRON).state.values() == {ALICE: {"producer_byte_rate": 20, "consumer_byte_rate": 40}}


def test_a_value_of_an_override_points_at_the_override():
    documents = [document(entry("{clusters: [prod-eu], quotas: {producer_byte_rate: 50}}"))]
    (declared,) = desired_state(documents, GOLD).state.entities.values()

    columns = {key.value: quota.source.column for key, quota in declared.quotas.items()}
    assert columns["producer_byte_rate"] > columns["consumer_byte_rate"]


def test_an_entity_that_loses_its_last_key_stays_declared_with_none():
    documents = [document(entry("{clusters: [prod-eu], quotas: {producer_byte_rate: null, consumer_byte_rate: null}}"))]
    state = desired_state(documents, GOLD).state

    assert state.entities[ALICE].quotas == {}
    assert state.values() == {}


def test_two_overrides_that_match_one_cluster_are_an_error_at_the_later():
    first, second = "{producer_byte_rate: 50}", "{producer_byte_rate: 60}"
    both = f"{{clusters: [prod-eu], quotas: {first}}}, {{clusters: {LABEL}, quotas: {second}}}"
    documents = [document(entry(both))]

    (finding,) = desired_state(documents, GOLD).findings
    assert finding.id == "overlapping-overrides"
    assert finding.related[0].span.column < span_of(finding).column
    assert desired_state(documents, IRON).findings == ()


def test_two_documents_that_claim_one_entity_are_an_error_at_the_later_that_names_the_first():
    documents = [document(entry(), file="a.yaml"), document(entry(), file="b.yaml")]
    result = desired_state(documents, GOLD)

    (finding,) = result.findings
    assert (finding.id, span_of(finding).file, finding.entity) == ("duplicate-entity", "b.yaml", ALICE)
    assert [related.span.file for related in finding.related] == ["a.yaml"]
    assert result.state.entities[ALICE].source.file == "a.yaml"


def test_one_entity_in_two_documents_for_different_clusters_is_fine():
    documents = [document(entry(), clusters="[prod-eu]"), document(entry(), clusters="[test]")]

    assert desired_state(documents, GOLD).findings == ()
    assert desired_state(documents, IRON).findings == ()


def test_a_declared_entity_outside_the_scope_is_an_error():
    scope = Scope(include=(Selector(types=(("user", TypeMatch(kind=MatchKind.PREFIX, text="pay-")),)),))
    (finding,) = desired_state([document(entry())], ClusterSpec(name="prod-eu", scope=scope)).findings

    assert (finding.id, finding.entity) == ("outside-scope", ALICE)


def test_a_filter_leaves_a_part_that_is_not_complete_but_everything_is_checked():
    documents = [document(entry(), file="a.yaml"), document(entry(), file="b.yaml")]
    result = desired_state(documents, GOLD, shown_files={"b.yaml"}.__contains__)

    assert result.state.complete is False
    assert result.state.entities == {}
    assert [finding.id for finding in result.findings] == ["duplicate-entity"]


def cluster_document(name, file="c.yaml"):
    text = f"apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {{name: {name}}}\nspec: {{prune: never}}\n"
    (made,) = read_documents(text.encode(), file).documents
    assert isinstance(made, ClusterDocument)
    return made


def test_a_cluster_name_that_nobody_has_is_an_error_with_a_suggestion():
    override = entry("{clusters: [prod-ue], quotas: {producer_byte_rate: 1}}")
    found = cluster_findings([document(override, clusters="[prod-eu, test]")], [cluster_document("prod-eu")])

    assert [(f.id, span_of(f).line) for f in found] == [("unknown-cluster", 4), ("unknown-cluster", 6)]
    assert "Did you mean 'prod-eu'?" in found[1].message


def test_labels_that_no_cluster_has_are_a_warning():
    found = cluster_findings([document(entry(), clusters="{labels: {tier: tin}}")], [cluster_document("prod-eu")])

    assert [f.id for f in found] == ["no-cluster-matches"]


def test_two_clusters_of_one_name_are_an_error_that_names_both():
    found = cluster_findings([], [cluster_document("a", "1.yaml"), cluster_document("a", "2.yaml")])

    assert [(f.id, span_of(f).file, f.related[0].span.file) for f in found] == [("duplicate-cluster", "2.yaml", "1.yaml")]
