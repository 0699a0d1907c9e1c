"""What a plan shows of entities that no manifest declares and that it leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.model import (
    MAY_OVERRIDE_DECLARED,
    NO_LONGER_DECLARED,
    OVERRIDES_DECLARED,
    UNALTERABLE,
    Baseline,
    ClusterSpec,
    CurrentState,
    DesiredState,
    Entity,
    Finding,
    KeptEntity,
    ManifestCommit,
    Message,
    Prune,
    QuotaKey,
    Quotas,
    Severity,
    compose,
    flag_part,
    join_messages,
    key_part,
    name_part,
)
from reconciler.planning import (
    OverriddenLimit,
    forgotten_entities,
    forgotten_note,
    needs_decision,
    overriding_entities,
    possible_overrides,
    unalterable_entities,
    unalterable_notes,
    undeclared_in_scope,
)
from reconciler.policy import Judgement
from reconciler.text import amount_part, rate_part
from reconciler.workflows.trusted import Before

_REMOVE: Final = compose("declare it with {empty}", empty=flag_part("quotas: {}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredEarlier:
    """What was declared before, as far as it is known: at the base that a change is merged into, and at a baseline."""

    base: Before | None = None
    baseline: Baseline | None = None

    def since(self, entity: Entity) -> str | None:
        """Return where an entity was declared, as the user would look it up. ``None``: nowhere that is known."""
        declared = self.base.desired.entities.get(entity) if self.base is not None else None
        if self.base is not None and declared is not None:
            return str(self.base.at.span(declared.source))
        if self.baseline is not None and entity in self.baseline.entities:
            return self.baseline.origin.name
        return None

    def is_known(self, source: ManifestCommit) -> bool:
        """False when there is nothing to look it up in; a base that is checked out here declares what the manifests do."""
        is_here = self.base is not None and self.base.at.commit == source.commit and not source.dirty
        return self.baseline is not None or (self.base is not None and not is_here)


def judge_undeclared(
    spec: ClusterSpec, desired: DesiredState, current: CurrentState, earlier: DeclaredEarlier, *, source: ManifestCommit
) -> Judgement:
    """Judge the entities that no manifest declares and that a plan leaves. ``source``: the commit of the manifests."""
    undeclared = undeclared_in_scope(desired, current.entities, spec.scope) if spec.prune is Prune.NEVER else ()
    kept = tuple(
        KeptEntity(entity=entity, quotas=current.entities[entity], since=since)
        for entity in undeclared
        if (since := earlier.since(entity)) is not None
    )
    return Judgement(
        findings=tuple(_findings(spec, desired, current, earlier, undeclared=undeclared, kept=kept)),
        notes=tuple(_notes(spec, desired, current, earlier, unclear=0 if earlier.is_known(source) else len(undeclared))),
        kept=kept,
    )


def _findings(
    spec: ClusterSpec,
    desired: DesiredState,
    current: CurrentState,
    earlier: DeclaredEarlier,
    *,
    undeclared: Sequence[Entity],
    kept: Sequence[KeptEntity],
) -> Iterator[Finding]:
    """One warning for each undeclared entity that drift calls a difference and that ``prune: never`` keeps.

    One more finding counts all that may override a declared limit, if there is such a client, and one for each reason those
    that brokers do not let anyone change.
    """
    for message in unalterable_notes(unalterable_entities(desired, current.entities, spec.scope)):
        yield Finding(id=UNALTERABLE, severity=Severity.INFO, message=message)
    if spec.prune is not Prune.NEVER:
        return
    live = current.entities
    yield from (_no_longer_declared(spec, each) for each in kept)
    named = {each.entity for each in kept}
    others = (entity for entity in undeclared if entity not in named)
    overrides = overriding_entities(others, desired, live, scope=spec.scope)
    known = earlier.baseline.unmanaged if earlier.baseline is not None else None
    if (possible := possible_overrides(overrides, known)) is not None:
        yield Finding(id=MAY_OVERRIDE_DECLARED, severity=Severity.INFO, message=possible, span=spec.place("prune"))
    for entity, overridden in overrides.items():
        if not needs_decision(entity, overridden, known):
            continue
        key, override = min(overridden.items(), key=lambda item: (not item[1].certain, item[0]))
        yield Finding(
            id=OVERRIDES_DECLARED,
            severity=Severity.WARNING,
            message=compose(
                "{entity} is not declared, and overrides {limits}. To keep it, declare its quotas. To remove it, {remove}. To "
                "leave it to others, exclude it from the scope.",
                entity=entity,
                limits=join_messages(_overrides(overridden, live[entity]), "; "),
                remove=_REMOVE,
            ),
            span=desired.entities[override.limit.entity].quotas[QuotaKey(key)].source,
            entity=entity,
            key=key,
        )


def _no_longer_declared(spec: ClusterSpec, kept: KeptEntity) -> Finding:
    return Finding(
        id=NO_LONGER_DECLARED,
        severity=Severity.WARNING,
        message=compose(
            "{entity} is no longer declared (declared at {since}), and {prune} keeps its quotas on the cluster ({quotas}). "
            "To remove them, {remove}. To keep them, declare them. Otherwise the entity is unmanaged after the next apply.",
            entity=kept.entity,
            since=name_part(kept.since),
            prune=flag_part("prune: never"),
            quotas=_quotas(kept.quotas),
            remove=_REMOVE,
        ),
        span=spec.place("prune"),
        entity=kept.entity,
    )


def _notes(
    spec: ClusterSpec, desired: DesiredState, current: CurrentState, earlier: DeclaredEarlier, *, unclear: int
) -> Iterator[str]:
    """Yield notes on entities that left the manifests, and on those that only a base or a baseline would show."""
    before: dict[str, Iterable[Entity]] = {}
    if earlier.base is not None and earlier.base.desired.complete:
        before[earlier.base.at.ref] = earlier.base.desired.entities
    if earlier.baseline is not None:
        before[earlier.baseline.origin.name] = earlier.baseline.entities
    for since, entities in before.items():
        if gone := forgotten_entities(entities, desired, current, spec.scope):
            yield forgotten_note(gone, since)
    if unclear:
        count = "1 entity in the scope is" if unclear == 1 else f"{unclear:,} entities in the scope are"
        yield (
            f"{count} not declared and stay{'s' if unclear == 1 else ''} (prune: never). Give --base REF or --baseline "
            "to also see which of them were declared before"
        )


def _overrides(overridden: dict[str, OverriddenLimit], live: Quotas) -> Iterator[Message]:
    for key, override in sorted(overridden.items()):
        limit = override.limit
        yield compose(
            "{key} of {entity} ({weaker}) with {value}",
            key=key_part(key),
            entity=limit.entity,
            weaker=rate_part(key, limit.value),
            value=rate_part(key, live[key]),
        )


def _quotas(live: Quotas) -> Message:
    return join_messages(
        compose("{key} {value}", key=key_part(key), value=amount_part(key, value)) for key, value in sorted(live.items())
    )
