"""From desired and current state to an ordered plan with a digest; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.planning.diff import change_of_one, difference, nothing_to_do_notes, quotas_after
    from reconciler.planning.drift import compare
    from reconciler.planning.order import in_writing_order
    from reconciler.planning.saved_plan import is_applied, read_saved_plan, require_current
    from reconciler.planning.undeclared import forgotten, forgotten_note, in_scope, kept, overriding
    from reconciler.planning.way_back import plan_way_back

__all__ = [
    "change_of_one",
    "compare",
    "difference",
    "forgotten",
    "forgotten_note",
    "in_scope",
    "in_writing_order",
    "is_applied",
    "kept",
    "nothing_to_do_notes",
    "overriding",
    "plan_way_back",
    "quotas_after",
    "read_saved_plan",
    "require_current",
]

__getattr__ = lazy_face(__name__)
