"""From desired and current state to an ordered plan with a digest; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.planning.diff import (
        Difference,
        action_of,
        brokers_of_part,
        change_of_one,
        difference,
        keep_parts,
        nothing_to_do_notes,
        quotas_after,
        sort_for_writing,
    )
    from reconciler.planning.drift import compare
    from reconciler.planning.saved_plan import is_applied, read_saved_plan, require_current
    from reconciler.planning.undeclared import (
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

__getattr__ = lazy_face(__name__)
