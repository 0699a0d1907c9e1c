"""Mutations that a history tells twice: in lines of the brokers that took the requests, and of the controller that did them."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model import CONTROLLER
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.kinds import Kind


def told_twice(series: Sequence[Series], grouping: Grouping) -> frozenset[int]:
    """The targets to leave out: of the two accounts the one that has fewer topics, of equal ones that of the brokers.

    Each account is judged by itself, so nothing is charged twice; this is only about saying it once.
    """
    mutations = [number for number, target in enumerate(grouping.targets) if target.kind is Kind.MUTATION]
    accounts: dict[bool, list[int]] = {True: [], False: []}
    for number in mutations:
        accounts[grouping.targets[number].broker == CONTROLLER].append(number)
    topics = {by: sum(series[m].requests for n in found for m in grouping.targets[n].members) for by, found in accounts.items()}
    if not all(topics.values()):
        return frozenset()
    return frozenset(accounts[topics[True] <= topics[False]])
