"""Alter: change entities by hand, under the guards of ``apply``, and write and verify as it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.errors import UsageError
from reconciler.formats import ValueRefusedError, declarable, parse_value, plan_digest
from reconciler.manifest import name_problems
from reconciler.model import (
    DEFAULT,
    Alteration,
    ApplyReport,
    Change,
    CurrentState,
    DesiredEntity,
    DesiredQuota,
    DesiredState,
    Entity,
    Plan,
    QuotaKey,
    Span,
    Summary,
    escaped,
    legal_keys,
)
from reconciler.planning import change_of_one, nothing_to_do_notes, sort_for_writing
from reconciler.policy import GuardContext, judge
from reconciler.ports import Clock, Progress, QuotaCluster
from reconciler.resolution import callback_notes, entity_refusal, unsendable
from reconciler.text import near_miss, number_text, shown
from reconciler.workflows.apply import Approval, Dialogue, write
from reconciler.workflows.connect import ClusterTarget, read_state
from reconciler.workflows.intent import claimed_elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterRequest:
    """One entity's, made by ``make_alter_request``. Values are per broker, in the unit of the key; no key is in both."""

    entity: Entity
    add: Mapping[str, float]
    delete: tuple[str, ...] = ()


def make_alter_request(
    entity: Entity, *, add: Mapping[str, str | float] | None = None, delete: Collection[str] = ()
) -> AlterRequest:
    """A request, checked as far as that is possible without a cluster.

    A value is a number, or text as in manifests (``10MiB``). Raises ``UsageError`` when nothing is asked for, for an entity that
    Kafka has not, a key that is unknown, not for this entity, or both set and removed, and a value that Kafka would refuse or
    bend.
    """
    wanted = add or {}
    if not wanted and not delete:
        raise UsageError("nothing to change. Pass --add KEY=VALUE,... or --delete KEY,..., or both")
    _require_entity(entity)
    for key in (*wanted, *delete):
        _require_key(entity, key)
    both = sorted(wanted.keys() & set(delete))
    if both:
        raise UsageError(f"{both[0]} cannot be both added and deleted")
    values = {key: _value(QuotaKey(key), value) for key, value in wanted.items()}
    return AlterRequest(entity=entity, add=values, delete=tuple(sorted(set(delete))))


def name_warnings(entity: Entity) -> Iterator[tuple[str, str]]:
    """Ids of rules and sentences about names that Kafka takes and that are most likely a mistake; ``explain`` knows the ids."""
    for entity_type, name in entity.parts:
        if name is not DEFAULT:
            yield from name_problems(entity_type, name)


def _require_entity(entity: Entity) -> None:
    words = entity_refusal(entity)
    if words is not None:
        raise UsageError(f"{entity} cannot be altered: Kafka has no such entity. Brokers answer: {escaped(words)}")
    words = unsendable(Alteration(entity=entity, ops={}))
    if words is not None:
        raise UsageError(f"{entity} cannot be altered: {words}")


def _require_key(entity: Entity, key: str) -> None:
    legal = [legal_key.value for legal_key in legal_keys(entity.types)]
    if key in legal:
        return
    if key in QuotaKey.__members__.values():
        raise UsageError(f"{key} cannot be set for {entity}. It takes {', '.join(legal)}")
    near = near_miss(key, legal)
    raise UsageError(f"{shown(key)} is not a quota key. {entity} takes {', '.join(legal)}{near}")


def _value(key: QuotaKey, value: str | float) -> float:
    if isinstance(value, str):
        try:
            return parse_value(key, value).number
        except ValueRefusedError as refused:
            raise UsageError(f"{key}={escaped(value)}: {refused} [{refused.id}]") from None
    number = float(value)
    if not declarable(key, number):
        raise UsageError(f"{key}={number_text(number)}: {key} is in {key.unit}, and Kafka cannot keep this limit")
    return number


NOT_ABOUT_MANIFESTS: Final = frozenset({"empty-desired-state"})
"""Guards that ask what manifests declare, where a plan is not of manifests."""
_NOT_ABOUT_ONE_ENTITY: Final = NOT_ABOUT_MANIFESTS | {"too-many-changes", "too-many-removals"}
"""Guards about all that manifests declare, or about how much changes, where the user named one entity."""
_BY_HAND: Final = Span(file="command line", line=1, column=1)


def alter_entities(
    cluster: QuotaCluster,
    requests: Sequence[AlterRequest],
    approval: Approval,
    *,
    target: ClusterTarget,
    dialogue: Dialogue,
    clock: Clock,
    progress: Progress,
) -> ApplyReport:
    """Write what is asked for, if everything agrees.

    The plan is shown first, whatever then becomes of it. An entity inside the
    managed scope of ``target`` trips the guard ``managed-entity``. What is refused comes back as a report. Raises
    ``WrongClusterError`` when another cluster answers, and ``BackendError``, only when nothing was written.
    """
    progress.step("reading the cluster's quotas")
    current = read_state(target.spec, cluster)
    plan = alter_plan(requests, current, approval, target=target, clock=clock)
    dialogue.show(plan)
    return write(plan, cluster, approval, dialogue=dialogue, clock=clock, progress=progress)


def alter_plan(
    requests: Sequence[AlterRequest], current: CurrentState, approval: Approval, *, target: ClusterTarget, clock: Clock
) -> Plan:
    """The pure part: the plan of these entities, each named once, or of nothing when all are as asked for already."""
    spec, live = target.spec, current.entities
    made = (change_of_one(r.entity, live.get(r.entity, {}), add=r.add, delete=r.delete) for r in requests)
    changes = sort_for_writing((change for change in made if change is not None), live)
    context = GuardContext(
        changes=changes,
        desired=stated_by(changes, _BY_HAND),
        current=current,
        spec=spec,
        now=clock.now(),
        claimed_elsewhere=claimed_elsewhere(spec, target.loaded, current.cluster),
        managed={r.entity: owned for r in requests if (owned := target.managed_at(r.entity)) is not None},
    )
    unasked = _NOT_ABOUT_ONE_ENTITY if len(requests) == 1 else NOT_ABOUT_MANIFESTS
    plan = plan_of_changes(context, target, accepted=approval.accepted, leave_out=unasked)
    done = [note for r in requests for note in nothing_to_do_notes(r.entity, live.get(r.entity, {}), add=r.add, delete=r.delete)]
    summary = replace(plan.summary, unchanged=len(requests) - len(changes))
    return replace(plan, summary=summary, notes=(*plan.notes, *done))


def plan_of_changes(
    context: GuardContext, target: ClusterTarget, *, accepted: Sequence[str], leave_out: Collection[str] = NOT_ABOUT_MANIFESTS
) -> Plan:
    """A plan that is not of manifests. ``leave_out``: guards that do not ask about it."""
    changes, current = context.changes, context.current
    judgement = judge(context, accepted=accepted, leave_out=leave_out)
    return Plan(
        cluster=current.cluster.named(target.spec.name),
        source=target.source,
        observed=current.observed,
        complete=True,
        summary=Summary(**Counter(change.action.value for change in changes)),
        changes=changes,
        guards=judgement.guards,
        digest=plan_digest(current.cluster.id, changes),
        notes=(*callback_notes(current.cluster), *current.notes, *judgement.notes),
    )


def stated_by(changes: Sequence[Change], place: Span) -> DesiredState:
    """Return the state that changes lead to, for the guards. ``place`` stands in place of manifests."""
    entities = {
        change.entity: DesiredEntity(
            entity=change.entity,
            quotas={
                QuotaKey(key.key): DesiredQuota(value=key.after, source=place, text=str(key.after))
                for key in change.keys
                if key.after is not None
            },
            source=place,
        )
        for change in changes
    }
    return DesiredState(entities=entities, complete=False)
