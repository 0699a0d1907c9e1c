"""Where results meet other systems: each sub-package knows one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.integrations.prometheus_metrics import LabelValues, MetricsOfClusters, RunMetrics
    from reconciler.integrations.transport import Answer, ApiAddress, Http, NoAnswerError, api_address
    from reconciler.integrations.webhook import post_to_webhook

__getattr__ = lazy_face(__name__)
