"""Declared values that are computed for each broker, in the words of every output."""

from __future__ import annotations

from fractions import Fraction

from reconciler.model import BudgetShare, ClusterTotal, GroupPart, Proportional, QuotaUnit, display_name
from reconciler.text.amounts import amount, number_text
from reconciler.text.quoting import count_of


def unit_text(key: str, unit: QuotaUnit) -> str:
    """``60 MiB/s in total, divided by 3 brokers``, ``2 of 5 shares of 200 MiB/s``: what was declared, and how it is divided."""
    if isinstance(unit, ClusterTotal):
        divided = "" if unit.brokers is None else f", divided by {count_of(unit.brokers, 'broker')}"
        return f"{amount(key, unit.value)} in total{divided}"
    if isinstance(unit, Proportional):
        return _proportional_text(key, unit)
    if isinstance(unit, GroupPart):
        return _group_text(key, unit)
    if isinstance(unit, BudgetShare):
        budget = "the budget" if unit.of is None else f"the budget of {amount(key, unit.of)}"
        return f"{shares_text(unit.percent)} % of {budget}"
    capacity = "spec.capacity" if unit.of is None else amount(key, unit.of)
    shares = shares_text(unit.count)
    return (
        f"{shares} shares of {capacity}" if unit.total is None else f"{shares} of {shares_text(unit.total)} shares of {capacity}"
    )


def _proportional_text(key: str, unit: Proportional) -> str:
    of = "all topics" if unit.topics is None else ", ".join(map(display_name, unit.topics))
    total = f"{amount(key, unit.value)} in proportion to the leaders of {of}"
    if unit.leaders is None or unit.partitions is None:
        return total
    return f"{total}, of which the broker with the most leads {unit.most} of {count_of(unit.partitions, 'partition')}"


def _group_text(key: str, unit: GroupPart) -> str:
    if unit.members is None:
        return f"{amount(key, unit.limit)} shared by all members of group {display_name(unit.group)}"
    parts = "the limit" if unit.members == 1 else f"1 of {unit.members} equal parts"
    return f"{parts} of group {display_name(unit.group)}, {amount(key, unit.limit)}"


def shares_text(count: Fraction) -> str:
    """``2``, ``0.5``."""
    return number_text(float(count))


def rebalance_text(key: str, before: float, after: float, *, brokers_before: int, brokers: int, absent: tuple[int, ...]) -> str:
    """``5 MiB/s more for each broker, because broker 4 left``. ``absent``: brokers that have replicas and are not up."""
    gone = brokers_before - brokers
    if gone > 0 and len(absent) == gone:
        names = ", ".join(map(str, absent))
        why = f"broker {names} left" if gone == 1 else f"brokers {names} left"
    else:
        why = f"{count_of(abs(gone), 'broker')} {'left' if gone > 0 else 'joined'}"
    return f"{amount(key, abs(after - before))} {'more' if after > before else 'less'} for each broker, because {why}"
