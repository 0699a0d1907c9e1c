"""Declared values that are computed for each broker, and the brokers among which totals are divided, in JSON documents."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from reconciler.documents.reading import FieldError, number_from_json
from reconciler.formats import Json, value_to_json
from reconciler.model import BudgetShare, ClusterTotal, GroupPart, LeaderSpread, Proportional, QuotaUnit, Shares
from reconciler.text import number_to_json


def unit_to_json(unit: QuotaUnit) -> dict[str, Json]:
    """``{clusterTotal, brokers}``, ``{shares, of, all_shares}``, ``{budget_percent, of}`` or ``{group, members, limit}``.

    What is not computed is left out.
    """
    document: dict[str, Json]
    if isinstance(unit, ClusterTotal):
        return {"clusterTotal": value_to_json(unit.value), **({} if unit.brokers is None else {"brokers": unit.brokers})}
    if isinstance(unit, Proportional):
        document = {"proportional": value_to_json(unit.value), "to": "leaders" if unit.topics is None else list(unit.topics)}
        if unit.leaders is not None and unit.partitions is not None:
            document["leaders"] = {str(broker): count for broker, count in unit.leaders}
            document["partitions"] = unit.partitions
        return document
    if isinstance(unit, GroupPart):
        divided: dict[str, Json] = {} if unit.members is None else {"members": unit.members}
        return {"group": unit.group, **divided, "limit": value_to_json(unit.limit)}
    if isinstance(unit, BudgetShare):
        return {
            "budget_percent": number_to_json(float(unit.percent)),
            **({} if unit.of is None else {"of": value_to_json(unit.of)}),
        }
    document = {"shares": number_to_json(float(unit.count))}
    if unit.of is not None:
        document["of"] = value_to_json(unit.of)
    if unit.total is not None:
        document["all_shares"] = number_to_json(float(unit.total))
    return document


def unit_from_json(row: Mapping[str, Any]) -> QuotaUnit:
    """The inverse. Raises ``FieldError``."""
    if "clusterTotal" in row:
        return ClusterTotal(value=number_from_json(row["clusterTotal"], "clusterTotal"), brokers=row.get("brokers"))
    if "proportional" in row:
        leaders = row.get("leaders")
        return Proportional(
            value=number_from_json(row["proportional"], "proportional"),
            topics=None if row["to"] == "leaders" else tuple(row["to"]),
            leaders=None if leaders is None else tuple(sorted((int(broker), count) for broker, count in leaders.items())),
            partitions=row.get("partitions"),
        )
    if "group" in row:
        return GroupPart(group=row["group"], members=row.get("members"), limit=number_from_json(row["limit"], "limit"))
    of = number_from_json(row["of"], "of") if "of" in row else None
    if "budget_percent" in row:
        return BudgetShare(percent=Fraction(str(row["budget_percent"])), of=of)
    if "shares" not in row:
        raise FieldError("", "must have 'clusterTotal', 'shares', 'budget_percent' or 'group'")
    total = row.get("all_shares")
    return Shares(
        count=Fraction(str(row["shares"])),
        of=of,
        total=None if total is None else Fraction(str(total)),
    )


def brokers_to_json(brokers: tuple[int, ...], leaders: LeaderSpread | None) -> dict[str, Json]:
    """``{brokers: [id], leaders: {partitions: {id: count}, leaderless, absent: [id]}}``, as far as they are known."""
    document: dict[str, Json] = {}
    if brokers:
        document["brokers"] = list(brokers)
    if leaders is not None:
        document["leaders"] = {
            "partitions": {str(broker): count for broker, count in leaders.partitions},
            "leaderless": leaders.leaderless,
            "absent": list(leaders.absent),
        }
    return document


def leaders_from_json(document: Mapping[str, Any]) -> LeaderSpread | None:
    """The field ``leaders`` of a document that may have one."""
    row = document.get("leaders")
    if row is None:
        return None
    partitions = sorted((int(broker), count) for broker, count in row["partitions"].items())
    return LeaderSpread(partitions=tuple(partitions), leaderless=row["leaderless"], absent=tuple(sorted(row["absent"])))
