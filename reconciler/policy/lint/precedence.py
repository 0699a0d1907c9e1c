"""Rules about who wins: quotas that hide others, that never win, or that multiply where a cap was meant."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model import CLIENT_KEYS, DEFAULT, Entity, Finding, QuotaKey
from reconciler.policy.lint.subject import CLIENT, USER_DEFAULTS, Subject, lint, listed


def default_hides_client_ids(subject: Subject) -> Iterator[Finding]:
    """A declared default-user quota above quotas of client ids, declared or live."""
    for key in CLIENT_KEYS:
        hider = _hider(subject, key)
        if hider is None or (declared := subject.desired.entities.get(hider)) is None or key not in declared.quotas:
            continue
        hidden = [entity for entity, quotas in subject.after.items() if entity.types == (CLIENT,) and key in quotas]
        if hidden:
            count = "1 client-id quota" if len(hidden) == 1 else f"{len(hidden)} client-id quotas"
            message = f"{key} of {hider} wins over {count}, which then limit nobody: {listed(hidden)}"
            related = subject.related(hidden, "this quota never wins", key)
            yield lint(
                "default-hides-client-ids", message, entity=hider, key=key, span=declared.quotas[key].source, related=related
            )


def client_id_never_wins(subject: Subject) -> Iterator[Finding]:
    """A declared client-id quota below a default-user quota, declared or live."""
    hiders = {key: hider for key in CLIENT_KEYS if (hider := _hider(subject, key)) is not None}
    if not hiders:
        return
    for entity, declared in subject.desired.entities.items():
        if entity.parts[0][0] != CLIENT:
            continue
        for key, quota in declared.quotas.items():
            if (hider := hiders.get(key)) is not None:
                where = "" if subject.place(hider) else " (on the cluster)"
                message = f"{entity} can never win for {key}: {hider}{where} has it too, and any user level is stronger"
                related = subject.related([hider], "the quota that always wins", key)
                yield lint("client-id-never-wins", message, entity=entity, key=key, span=quota.source, related=related)


def _hider(subject: Subject, key: QuotaKey) -> Entity | None:
    """The default that every client with a client id meets before any client-id level; without one it meets none of those."""
    return next((entity for entity in USER_DEFAULTS if key in subject.after.get(entity, ())), None)


def multiplies(subject: Subject) -> Iterator[Finding]:
    """Users with the default client-id: each client id takes the full rate, and a cap of the user itself is no cap any more."""
    for entity, declared in subject.desired.entities.items():
        if len(entity.parts) != 2 or entity.parts[1] != (CLIENT, DEFAULT) or not declared.quotas:
            continue
        alone = Entity(parts=entity.parts[:1])
        bypassed = [key for key in declared.quotas if key in subject.after.get(alone, ())]
        rest = [key.value for key in declared.quotas if key not in bypassed]
        for key in bypassed:
            message = (
                f"{entity} gives every client id the full {key}, and so {alone} caps only clients that send no client id; "
                "exactly one quota wins"
            )
            related = subject.related([alone], "the cap that does not hold", key)
            yield lint("user-cap-bypassed", message, entity=entity, key=key, span=declared.quotas[key].source, related=related)
        if rest:
            message = f"{entity} gives each client id the full {', '.join(rest)}, in a bucket of its own; that is no cap"
            yield lint("default-client-multiplies", message, entity=entity, span=declared.source)
