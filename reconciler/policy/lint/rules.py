"""All lint rules, and the one function that runs them."""

from __future__ import annotations

import enum
import functools
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from reconciler.model import DEFAULT, Finding
from reconciler.policy.lint.capacity import overcommitted
from reconciler.policy.lint.expiry import expiring_values
from reconciler.policy.lint.names import confusable_names, ip_two_spellings, migrated_name, unreadable_node
from reconciler.policy.lint.precedence import (
    captures_protected,
    default_hides_client_ids,
    empty_client_id_escapes,
    first_default,
    multiplies,
    same_as_fallback,
)
from reconciler.policy.lint.strimzi import strimzi_owns
from reconciler.policy.lint.subject import CLIENT, IP, Subject
from reconciler.policy.lint.values import live_value_changes_meaning, odd_values, reduction_throttles, streams_thread_client_id


class Trait(enum.Flag):
    """What there has to be before a rule can find anything."""

    NONE = 0
    LIVE = enum.auto()
    CHANGES = enum.auto()
    UNREADABLE = enum.auto()
    CAPACITY = enum.auto()
    STRIMZI = enum.auto()
    PROTECTED = enum.auto()
    DEFAULTS = enum.auto()
    CLIENT_IDS = enum.auto()
    ADDRESSES = enum.auto()
    FOREIGN_LETTERS = enum.auto()
    EXPIRIES = enum.auto()


CHECKS: Final[Mapping[Callable[[Subject], Iterator[Finding]], Trait]] = {
    default_hides_client_ids: Trait.DEFAULTS,
    multiplies: Trait.DEFAULTS,
    captures_protected: Trait.DEFAULTS | Trait.PROTECTED,
    first_default: Trait.DEFAULTS,
    empty_client_id_escapes: Trait.DEFAULTS,
    ip_two_spellings: Trait.ADDRESSES,
    confusable_names: Trait.FOREIGN_LETTERS,
    odd_values: Trait.NONE,
    same_as_fallback: Trait.DEFAULTS,
    streams_thread_client_id: Trait.CLIENT_IDS,
    reduction_throttles: Trait.LIVE | Trait.CHANGES,
    live_value_changes_meaning: Trait.LIVE,
    migrated_name: Trait.LIVE,
    unreadable_node: Trait.UNREADABLE,
    overcommitted: Trait.CAPACITY,
    expiring_values: Trait.EXPIRIES,
    strimzi_owns: Trait.STRIMZI,
}
"""Each rule with what it needs. A rule walks the state once at most."""


def lint_state(subject: Subject) -> Iterator[Finding]:
    """The findings of the rules that can find something in this state, with the rules' own severities, unsorted."""
    traits = traits_of(subject)
    for check, needed in CHECKS.items():
        if needed in traits:
            yield from check(subject)


def traits_of(subject: Subject) -> Trait:
    """One walk over all entities, which spares one for each rule about entities that are not there."""
    spec = subject.spec
    kinds = set()
    # Plain booleans: adding members of an enum for each of 100,000 entities takes longer than the rules.
    defaults = foreign = False
    for entity in itertools.chain(subject.after, subject.desired.entities):
        for kind, name in entity.parts:
            kinds.add(kind)
            if name is DEFAULT:
                defaults = True
            elif not name.isascii():
                foreign = True
    seen = {
        Trait.LIVE: bool(subject.before),
        Trait.CHANGES: bool(subject.changed),
        Trait.UNREADABLE: bool(subject.unreadable),
        Trait.CAPACITY: bool(spec.brokers.capacity),
        Trait.STRIMZI: spec.brokers.strimzi is not None,
        Trait.PROTECTED: bool(spec.safety.protected),
        Trait.DEFAULTS: defaults,
        Trait.CLIENT_IDS: CLIENT in kinds,
        Trait.ADDRESSES: IP in kinds,
        Trait.FOREIGN_LETTERS: foreign,
        Trait.EXPIRIES: any(declared.expiries for declared in subject.desired.entities.values()),
    }
    return functools.reduce(operator.or_, (trait for trait, is_there in seen.items() if is_there), Trait.NONE)
