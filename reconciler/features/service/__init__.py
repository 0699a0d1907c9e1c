"""The long-running reconciler: watches manifests and a cluster, reports differences, and writes where that is switched on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.features.service.log import LogFormat
    from reconciler.features.service.loop import Pace
    from reconciler.features.service.record import RecordSettings, run_recorder
    from reconciler.features.service.run import RunSettings, run_service

__getattr__ = lazy_face(__name__)
