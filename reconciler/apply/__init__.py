"""Writing a plan: validate-only, chunks, read back, report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.apply.executor import ApplySettings, Executor
    from reconciler.apply.stepping import SteppedExecutor
    from reconciler.apply.steps import WINDOW_SECONDS, StepDown, stepping_notes
    from reconciler.apply.writing import ChunkLimits, split_into_requests

__getattr__ = lazy_face(__name__)
