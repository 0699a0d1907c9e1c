"""Groups of manifests: an equal part for each member, or one shared limit for brokers with the plugin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.callbacks.callback import GroupQuotaCallback, callback_limits
from reconciler.manifest.desired import DesiredResult, desired_state
from reconciler.manifest.documents import ClientQuotasDocument, ClusterDocument, RepositoryDocument
from reconciler.manifest.ownership import ownership_findings
from reconciler.manifest.reading import read_documents
from reconciler.model.entity import Entity
from reconciler.model.quota import QuotaKey
from reconciler.resolution.reserved_users import GROUP_CALLBACK, GroupLimit, GroupMember, MemberKind, reserved_entity
from tests.support.desired_text import desired_of
from tests.support.manifests import cluster, quotas, repository

KEY = QuotaKey.PRODUCER_BYTE_RATE
MIB = 2.0**20
PLUGIN = {"quotaCallback": {"class": GROUP_CALLBACK}}


def user(name: str) -> Entity:
    return Entity.of({"user": name})


def read(
    groups: Mapping[str, object], *entries: tuple[Mapping[str, object], Mapping[str, object]], **spec: Any
) -> tuple[DesiredResult, tuple[str, ...]]:
    return desired_of(cluster(**spec), quotas(*entries, groups=groups))


def group(*users: str, rate: object = "60MiB", **fields: Any) -> dict[str, object]:
    return {"users": list(users), "quotas": {KEY.value: rate}, **fields}


def test_with_the_plugin_the_members_share_the_limit_as_its_rules_store_it() -> None:
    members = {**group("svc-", match="prefix"), "client-ids": ["batch-"]}
    result, findings = read({"payments": members, "x": group("alice")}, **PLUGIN)
    values = result.state.values()

    assert findings == ()
    assert values[reserved_entity(GroupLimit(group="payments"))] == {KEY.value: 60 * MIB}
    assert reserved_entity(GroupMember(group="payments", kind=MemberKind.CLIENT_ID_PREFIX, name="batch-")) in values
    limits = callback_limits(GroupQuotaCallback, values, {1: None})[KEY.value].at(1)
    shared = limits.resolve("svc-a", "app"), limits.resolve("bob", "batch-7")
    assert [each.value for each in shared] == [60 * MIB, 60 * MIB]
    assert shared[0].bucket == shared[1].bucket != limits.resolve("alice", "app").bucket
    assert limits.resolve("bob", "app").value is None
    (note,) = result.state.notes
    assert f"The members of 2 groups share one limit on each broker. Only brokers with {GROUP_CALLBACK}" in note


def test_a_quota_that_names_a_member_decides_before_the_group() -> None:
    own = ({"user": "bob"}, {KEY.value: "5MiB", "consumer_byte_rate": 7})
    divided, findings = read({"payments": group("alice", "bob")}, own)
    assert findings == ("member-with-own-quota",)
    assert divided.state.values() == {
        user("alice"): {KEY.value: 30 * MIB},
        user("bob"): {KEY.value: 5 * MIB, "consumer_byte_rate": 7.0},
    }
    assert "gets no part" in divided.findings[0].message
    shared, findings = read({"payments": group("alice", "bob")}, own, **PLUGIN)
    assert findings == ("member-with-own-quota",)
    limits = callback_limits(GroupQuotaCallback, shared.state.values(), {1: None})[KEY.value].at(1)
    assert [limits.resolve(name, "app").value for name in ("alice", "bob")] == [60 * MIB, 5 * MIB]


def test_what_cannot_be_is_refused_with_its_place() -> None:
    assert read({"a": group("alice"), "b": group("alice", "bob")})[1] == ("member-of-two-groups",)
    assert read({"a": group("svc-", match="prefix")})[1] == ("group-needs-plugin",)
    assert read({"a": group("x" * 256, match="prefix")}, **PLUGIN)[1] == ("group-prefix-too-long",)
    assert read({"a": group("x" * 255, match="prefix"), "b": group("y" * 900)}, **PLUGIN)[1] == ()
    assert read({"a": group("alice", "bob", "carol", rate=2)})[1] == ("part-too-small",)
    assert read({"a": {"quotas": {KEY.value: 2}}})[1] == ("missing-field",)
    assert read({"a": group("alice")}, scope={"include": [{"user": {"prefix": "x"}}]})[1] == ("outside-scope",)
    result, _ = desired_of(cluster(), quotas(groups={"a": group("alice")}), quotas(groups={"a": group("bob")}))
    (finding,) = result.findings
    assert (finding.id, finding.span and finding.span.line) == ("duplicate-group", 15)


def test_clusters_give_a_group_other_limits_by_documents() -> None:
    texts = [quotas(groups={"a": group("alice", rate=rate)}, clusters=[name]) for name, rate in (("prod", 5), ("test", 3))]
    content = read_documents("---\n".join([cluster("prod"), cluster("test"), *texts]).encode(), "all.yaml")
    documents = [each for each in content.documents if isinstance(each, ClientQuotasDocument)]
    clusters = [each.spec for each in content.documents if isinstance(each, ClusterDocument)]
    assert content.findings == ()
    limits = {spec.name: desired_state(documents, spec).state.values()[user("alice")] for spec in clusters}
    assert limits == {"prod": {KEY.value: 5.0}, "test": {KEY.value: 3.0}}
    assert read({"a": group("alice", profile="gold")})[1] == ("unknown-field",)
    assert read({"a": group("alice", overrides=[])})[1] == ("unknown-field",)


def test_an_owner_cannot_limit_the_user_of_another_owner_by_a_group() -> None:
    owners = {"a": {"entities": [{"user": {"prefix": "a-"}}]}, "b": {"entities": [{"user": {"prefix": "b-"}}]}}
    text = f"{repository(owners=owners)}---\n{quotas(owner='a', groups={'mine': group('a-1', 'b-1')})}"
    content = read_documents(text.encode(), "all.yaml")
    documents = [each for each in content.documents if isinstance(each, ClientQuotasDocument)]
    (rules,) = [each for each in content.documents if isinstance(each, RepositoryDocument)]
    assert content.findings == ()
    found = list(ownership_findings(documents, rules.owners, relative=lambda path: path, clusters=()))
    assert [(each.id, str(each.entity)) for each in found] == [("foreign-entity", "user=b-1")]


@given(st.integers(1, 2**50), st.integers(1, 60))
def test_parts_never_exceed_the_limit_and_lose_less_than_one_unit_each(limit: int, members: int) -> None:
    result, findings = read({"g": group(*(f"u{number}" for number in range(members)), rate=limit)})
    if limit < members:
        assert findings == ("part-too-small",)
        return
    total = sum(values[KEY.value] for values in result.state.values().values())
    assert limit - members < total <= limit


def test_a_prefix_is_measured_as_java_does() -> None:
    assert MemberKind.CLIENT_ID_PREFIX.takes("x" * 255)
    assert not MemberKind.CLIENT_ID_PREFIX.takes("\N{GRINNING FACE}" * 128)
    assert MemberKind.CLIENT_ID.takes("x" * 9000)
