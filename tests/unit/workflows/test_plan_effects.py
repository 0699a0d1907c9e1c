"""The effects of a plan: from the plan's own changes, unless the brokers resolve quotas with code of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.errors import AuthorizationError
from reconciler.model.cluster import CallbackClass
from reconciler.model.effect import OTHER, KnownClient
from reconciler.model.entity import Entity
from reconciler.model.plan import Action, Change, KeyChange, Reason
from reconciler.planning import quotas_after
from reconciler.resolution.reserved_users import GROUP_CALLBACK, GroupLimit, GroupMember, MemberKind, reserved_entity
from reconciler.workflows.plan_effects import with_effects
from tests.builders import cluster_spec, current, ip, plan, user
from tests.fakes import FakeCluster, WithCallback

KEY = "producer_byte_rate"


def change(entity: Entity, *keys: tuple[str, float | None, float | None]) -> Change:
    parts = tuple(KeyChange(key=k, before=b, after=a, reason=Reason.VALUE_DIFFERS) for k, b, a in keys)
    return Change(entity=entity, action=Action.UPDATE, keys=parts)


def test_effects_reach_the_members_of_a_group_where_the_brokers_have_the_plugin() -> None:
    limit = reserved_entity(GroupLimit(group="g"))
    member = reserved_entity(GroupMember(group="g", kind=MemberKind.USER, name="a"))
    state = replace(current(), entities={limit: {KEY: 9.0}, member: {"request_percentage": 100.0}})
    done = with_effects(plan(change(limit, (KEY, 9.0, 4.0))), state, source=WithCallback(GROUP_CALLBACK))
    assert done.effects is not None
    (effect,) = done.effects.effects
    assert effect.client == KnownClient(user="a", client_id=OTHER)
    assert (effect.before and effect.before.value, effect.after and effect.after.value) == (9.0, 4.0)
    assert any("show its limit, which they share" in note for note in done.notes)


def test_effects_of_a_snapshot_follow_the_plugin_that_the_cluster_manifest_names() -> None:
    limit = reserved_entity(GroupLimit(group="g"))
    member = reserved_entity(GroupMember(group="g", kind=MemberKind.USER, name="a"))
    state = replace(current(), entities={limit: {KEY: 9.0}, member: {"request_percentage": 100.0}})
    changes = plan(change(limit, (KEY, 9.0, 4.0)))
    written = cluster_spec(callback=CallbackClass(name=GROUP_CALLBACK))
    done = with_effects(changes, state, source=FakeCluster(), spec=written)
    assert done.effects is not None
    assert [effect.client for effect in done.effects.effects] == [KnownClient(user="a", client_id=OTHER)]
    own = with_effects(changes, state, source=WithCallback(None), spec=written)
    assert own.effects is not None
    assert KnownClient(user="a", client_id=OTHER) not in [effect.client for effect in own.effects.effects]


def test_a_callback_of_the_brokers_own_makes_effects_unknown_and_is_named_escaped() -> None:
    done = with_effects(
        plan(change(user("a"), (KEY, None, 4.0))), current(), source=WithCallback("io.example.Static\x1bCallback")
    )
    assert done.effects is not None
    assert done.effects.effects == ()
    assert done.effects.unknown is not None
    assert '"io.example.Static\\u001bCallback"' in done.effects.unknown
    assert "client.quota.callback.class" in done.effects.unknown
    assert not [note for note in done.notes if "unknown" in note], "the section of effects says it once"
    assert done.applyable


@pytest.mark.parametrize("source", [FakeCluster(), WithCallback(AuthorizationError("not allowed"))])
def test_when_nobody_tells_the_setting_the_assumption_is_noted(source: FakeCluster) -> None:
    done = with_effects(plan(change(user("a"), (KEY, None, 4.0))), current(), source=source)
    assert done.effects is not None
    assert len(done.effects.effects) == 1
    assert [n for n in done.notes if n.startswith("effects assume")]


def test_an_address_whose_spellings_disagree_has_unknown_effects_and_not_none() -> None:
    rate = "connection_creation_rate"
    before, changed = {ip("::ffff:a00:1"): {rate: 50.0}}, {ip("::ffff:a00:1"): {rate: 50.0}, ip("10.0.0.1"): {rate: 10.0}}
    changes = [change(ip("10.0.0.1"), (rate, None, 10.0))]
    assert quotas_after(before, changes) == changed
    found = with_effects(plan(*changes), current(before), source=object())
    assert found.effects is not None
    assert "ip=10.0.0.1, ip=::ffff:a00:1 are one address with different limits" in str(found.effects.unknown)
