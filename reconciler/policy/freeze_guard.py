"""The guard about time: nothing is written while a cluster is frozen."""

from __future__ import annotations

import datetime
from typing import Final

from reconciler.model import escaped
from reconciler.policy.freeze import freeze_at
from reconciler.policy.situation import Measurement, Situation

FREEZE_WINDOW: Final = "freeze-window"
"""Its id; a refusal by it alone passes with time."""


def freeze_window(situation: Situation) -> Measurement:
    """Any change while the cluster is frozen. A plan only tells; it is ``apply`` that refuses."""
    windows = situation.spec.freeze
    frozen = freeze_at(windows, situation.now) if windows and situation.changes else None
    if frozen is None:
        measured = "not frozen" if situation.changes else "no change"
        return Measurement(entities=(), measured=measured, limit="no change while frozen", why="")
    until = f"until {_utc(frozen.until)}" if frozen.until else "without end"
    if frozen.window is None:
        why = f"the cluster is frozen now, {until}: it may be changed in its allow windows only"
    else:
        why = f"the cluster is frozen now, {until}" + (f": {escaped(frozen.window.reason)}" if frozen.window.reason else "")
    return Measurement(
        entities=tuple(c.entity for c in situation.changes),
        measured=f"frozen {until}",
        limit="no change while frozen",
        why=why,
        set_in=(frozen.window.span if frozen.window else None) or situation.spec.place("freeze"),
    )


def _utc(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
