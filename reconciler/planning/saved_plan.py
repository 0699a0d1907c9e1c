"""A saved plan, compared with the cluster now.

Its digest is compared, and its values explain why it differs now. Guards, scope and changes come from the manifests and the
cluster each time anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler import documents
from reconciler.errors import StalePlanError, UnusableDocumentError
from reconciler.model import CurrentState, Entity, Plan, escaped, same_value
from reconciler.text import list_some, moment_text, number_text

_SHOWN: Final = 10


def read_saved_plan(text: str, *, name: str) -> Plan:
    """The plan of a document.

    Raises ``FileAccessError`` for text that is not a plan, and ``StalePlanError`` for a plan of another major version or one
    whose changes do not give its digest: the reviewer of that file saw something else than it stands for.
    """
    try:
        return documents.read_plan(text, name=name)
    except UnusableDocumentError as error:
        raise StalePlanError(f"{error}. Plan again") from error


def require_current(saved: Plan, plan: Plan) -> None:
    """Raise ``StalePlanError``, with every difference, unless this plan has exactly the changes of the saved one."""
    if saved.cluster.id != plan.cluster.id:
        of, answers = (escaped(cluster.id or "unknown") for cluster in (saved.cluster, plan.cluster))
        msg = f"the saved plan is of cluster {of}, and {answers} answers. Plan again"
        raise StalePlanError(msg)
    if saved.digest != plan.digest:
        lines = (*_brokers_differ(saved, plan), *_expired_since(saved, plan), *differences(saved, plan))
        msg = f"the saved plan is stale: {list_some(lines, _SHOWN, between='. ')}. Plan again"
        raise StalePlanError(msg)


def _brokers_differ(saved: Plan, plan: Plan) -> Iterator[str]:
    """Yield the reason why totals give other values now: other brokers."""
    before, now = saved.totals.brokers, plan.totals.brokers
    if before != now and before and now:
        were, are = (", ".join(map(str, brokers)) for brokers in (before, now))
        yield f"totals were divided among brokers {were} when it was made, and now among {are}"


def _expired_since(saved: Plan, plan: Plan) -> Iterator[str]:
    """Yield the reason why values differ now: they expired between the two plans."""
    for change in saved.changes:
        for key in change.keys:
            if key.expiry is not None and saved.observed.at < key.expiry.at <= plan.observed.at:
                yield f"{change.entity} {escaped(key.key)} expired on {moment_text(key.expiry.at)}, after the plan was made"


def is_applied(saved: Plan, current: CurrentState) -> bool:
    """True when its cluster has every value that the saved plan would write, so that there is nothing left of it to do."""
    if saved.cluster.id != current.cluster.id or not saved.changes:
        return False
    live = current.entities
    return all(same_value(live.get(change.entity, {}).get(key.key), key.after) for change in saved.changes for key in change.keys)


def differences(saved: Plan, plan: Plan) -> Iterator[str]:
    """One line for every key that the saved plan and this plan treat differently, in this plan's order."""
    reviewed, now = _values(saved), _values(plan)
    for (entity, key), pair in now.items():
        if reviewed.get((entity, key)) != pair:
            yield f"{entity} {escaped(key)}: reviewed {_arrow(reviewed.get((entity, key)))}, now {_arrow(pair)}"
    for (entity, key), pair in reviewed.items():
        if (entity, key) not in now:
            yield f"{entity} {escaped(key)}: reviewed {_arrow(pair)}, now no change"


def _values(plan: Plan) -> dict[tuple[Entity, str], tuple[str, str]]:
    return {
        (change.entity, key.key): (number_text(key.before), number_text(key.after))
        for change in plan.changes
        for key in change.keys
    }


def _arrow(pair: tuple[str, str] | None) -> str:
    return "no change" if pair is None else " -> ".join(pair)
