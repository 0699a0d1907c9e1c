"""Where results meet other systems: each sub-package knows one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.integrations.exporter_page import PAGE_PREFIX, ExporterPage, PageRead, PageSample, PageSeries
    from reconciler.integrations.github.api import GitHubApi
    from reconciler.integrations.github.pull_requests import (
        ACTIONS,
        Comment,
        PullRequestComments,
        has_artifact,
        newest_commit,
        pull_request_of,
        read_event,
        run_link,
        workflow_run,
    )
    from reconciler.integrations.github.transport import PUBLIC, api_address, read_token, repository_name
    from reconciler.integrations.prometheus_api import (
        SCHEME_PREFIX,
        HttpLogin,
        PrometheusApi,
        TooManySamplesError,
        basic_auth,
    )
    from reconciler.integrations.prometheus_metrics import LabelValues, RunMetrics

__all__ = [
    "ACTIONS",
    "PAGE_PREFIX",
    "PUBLIC",
    "SCHEME_PREFIX",
    "Comment",
    "ExporterPage",
    "GitHubApi",
    "HttpLogin",
    "LabelValues",
    "PageRead",
    "PageSample",
    "PageSeries",
    "PrometheusApi",
    "PullRequestComments",
    "RunMetrics",
    "TooManySamplesError",
    "api_address",
    "basic_auth",
    "has_artifact",
    "newest_commit",
    "pull_request_of",
    "read_event",
    "read_token",
    "repository_name",
    "run_link",
    "workflow_run",
]

__getattr__ = lazy_face(__name__)
