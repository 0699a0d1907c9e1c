"""Guards and rules over pure data, and the catalogue of their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.policy.backtest_rules import FailingRows, predictions_of
    from reconciler.policy.change_guards import GuardContext, ManagedAt
    from reconciler.policy.guards import FREEZE_WINDOW, GUARDS, Judgement, by_option, check_guard_ids, in_manifest, judge
    from reconciler.policy.lint.precedence import Subject
    from reconciler.policy.lint.rules import lint_state
    from reconciler.policy.lint.values import LONGEST_SECONDS, REDUCTION_THROTTLES, WINDOW_SECONDS

__getattr__ = lazy_face(__name__)
