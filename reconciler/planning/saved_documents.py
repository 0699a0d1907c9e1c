"""Documents of earlier runs, compared with the cluster now: a saved plan as ``apply`` uses it, a report as ``revert`` does.

Of a saved plan the digest is compared, and its values explain why it differs now. Guards, scope and changes come from the
manifests and the cluster each time anew. Of a report the changes are reversed, and quotas that changed since stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.documents import read_plan
from reconciler.errors import AlteredDocumentError, ChangedSinceError, DocumentVersionError, OutOfScopeError, StalePlanError
from reconciler.model import (
    ApplyReport,
    Change,
    ChangeOutcome,
    ChangeStatus,
    CurrentState,
    Entity,
    KeyChange,
    Plan,
    Quotas,
    Reason,
    Scope,
    escaped,
    same_value,
)
from reconciler.planning.diff import action_of
from reconciler.text import list_some, moment_text, number_text

_SHOWN: Final = 10


def read_saved_plan(text: str, *, name: str) -> Plan:
    """The plan of a document.

    Raises ``FileAccessError`` for text that is not a plan, and ``StalePlanError`` for a plan of another major version or one
    whose changes do not give its digest: the reviewer of that file saw something else than it stands for.
    """
    try:
        return read_plan(text, name=name)
    except (AlteredDocumentError, DocumentVersionError) as error:
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
    """Why totals give other values now: other brokers."""
    before, now = saved.totals.brokers, plan.totals.brokers
    if before != now and before and now:
        were, are = (", ".join(map(str, brokers)) for brokers in (before, now))
        yield f"totals were divided among brokers {were} when it was made, and now among {are}"


def _expired_since(saved: Plan, plan: Plan) -> Iterator[str]:
    """Why values differ now: they expired between the two plans."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WayBack:
    """The changes, not yet in writing order, and how many entities are as they were before already."""

    changes: tuple[Change, ...]
    already_back: int


def plan_way_back(report: ApplyReport, live: Mapping[Entity, Quotas], *, scope: Scope) -> WayBack:
    """Plan every key that the report's run wrote, or may have written, back to its value before.

    A key that has its value from before again needs nothing. Raises ``ChangedSinceError`` when a key has neither that nor a
    value of the run, because another writer changed it since; and ``OutOfScopeError`` for entities outside of the scope.
    """
    touched = [outcome for outcome in report.outcomes if _may_be_written(outcome)]
    outside = [str(outcome.change.entity) for outcome in touched if not scope.contains(outcome.change.entity)]
    if outside:
        raise OutOfScopeError(f"the report changed what is outside the scope of the cluster: {list_some(outside, _SHOWN)}")
    foreign = [text for outcome in touched for text in _changed_since(outcome, live.get(outcome.change.entity, {}))]
    if foreign:
        raise ChangedSinceError(f"another writer changed it since: {list_some(foreign, _SHOWN, between='. ')}")
    changes = tuple(change for outcome in touched if (change := _back(outcome.change, live.get(outcome.change.entity, {}))))
    return WayBack(changes=changes, already_back=len(touched) - len(changes))


def _may_be_written(outcome: ChangeOutcome) -> bool:
    return outcome.status in (ChangeStatus.APPLIED, ChangeStatus.UNKNOWN) or bool(outcome.reached)


def _changed_since(outcome: ChangeOutcome, live: Quotas) -> Iterator[str]:
    for key in outcome.change.keys:
        now = live.get(key.key)
        written: tuple[float | None, ...] = outcome.reached.get(key.key, (key.after,))
        if not any(same_value(now, value) for value in (*written, key.before)):
            left = " or ".join(number_text(value) for value in written)
            place = f"{outcome.change.entity} {key.key} is {number_text(now)}"
            yield f"{place}, the run left it at {left} (before it: {number_text(key.before)})"


def _back(change: Change, live: Quotas) -> Change | None:
    keys = tuple(
        KeyChange(key=key.key, before=live.get(key.key), after=key.before, reason=Reason.WAY_BACK)
        for key in change.keys
        if not same_value(live.get(key.key), key.before)
    )
    if not keys:
        return None
    return Change(entity=change.entity, action=action_of(live, keys), keys=keys)
