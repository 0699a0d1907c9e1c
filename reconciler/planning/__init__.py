"""From desired and current state to an ordered plan with a digest; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.planning.baseline import RecordedBaseline, baseline_to_json, read_baseline
    from reconciler.planning.diff import difference
    from reconciler.planning.document import plan_to_json
    from reconciler.planning.drift import compare
    from reconciler.planning.drift_document import DRIFT_FORMAT_VERSION, drift_to_json
    from reconciler.planning.one_entity import change_of_one, nothing_to_do_notes
    from reconciler.planning.order import in_writing_order
    from reconciler.planning.place import Place
    from reconciler.planning.reading import read_plan
    from reconciler.planning.report_reading import read_report
    from reconciler.planning.saved_plan import SavedPlan, is_applied, read_saved_plan, require_current
    from reconciler.planning.undeclared import forgotten, forgotten_note, in_scope, kept, overriding

__all__ = [
    "DRIFT_FORMAT_VERSION",
    "Place",
    "RecordedBaseline",
    "SavedPlan",
    "baseline_to_json",
    "change_of_one",
    "compare",
    "difference",
    "drift_to_json",
    "forgotten",
    "forgotten_note",
    "in_scope",
    "in_writing_order",
    "is_applied",
    "kept",
    "nothing_to_do_notes",
    "overriding",
    "plan_to_json",
    "read_baseline",
    "read_plan",
    "read_report",
    "read_saved_plan",
    "require_current",
]

__getattr__ = lazy_face(__name__)
