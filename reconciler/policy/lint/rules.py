"""All lint rules, and the one function that runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from reconciler.model import Finding
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
from reconciler.policy.lint.subject import Subject
from reconciler.policy.lint.values import live_value_changes_meaning, odd_values, reduction_throttles, streams_thread_client_id

CHECKS: Final[tuple[Callable[[Subject], Iterator[Finding]], ...]] = (
    default_hides_client_ids,
    multiplies,
    captures_protected,
    first_default,
    empty_client_id_escapes,
    ip_two_spellings,
    confusable_names,
    odd_values,
    same_as_fallback,
    streams_thread_client_id,
    reduction_throttles,
    live_value_changes_meaning,
    migrated_name,
    unreadable_node,
    overcommitted,
    expiring_values,
    strimzi_owns,
)
"""Each walks the state once at most; what needs the current state shows nothing without one."""


def lint_state(subject: Subject) -> Iterator[Finding]:
    """The findings of all rules about one state, with the rules' own severities, unsorted."""
    for check in CHECKS:
        yield from check(subject)
