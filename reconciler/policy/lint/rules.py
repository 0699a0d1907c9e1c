"""All lint rules, and the one function that runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from reconciler.model import Finding
from reconciler.policy.lint.addresses import ip_two_spellings
from reconciler.policy.lint.confusables import confusable_names
from reconciler.policy.lint.defaults import captures_protected, empty_client_id_escapes, first_default
from reconciler.policy.lint.fallback import same_as_fallback
from reconciler.policy.lint.leftovers import migrated_name, unreadable_node
from reconciler.policy.lint.precedence import client_id_never_wins, default_hides_client_ids, multiplies
from reconciler.policy.lint.reduction import reduction_throttles
from reconciler.policy.lint.subject import Subject
from reconciler.policy.lint.values import live_value_changes_meaning, odd_values, streams_thread_client_id

CHECKS: Final[tuple[Callable[[Subject], Iterator[Finding]], ...]] = (
    default_hides_client_ids,
    client_id_never_wins,
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
)
"""Each walks the state once at most; what needs the current state says nothing without one."""


def lint_state(subject: Subject) -> Iterator[Finding]:
    """Every finding of every rule, with the rules' own severities, in no order."""
    for check in CHECKS:
        yield from check(subject)
