"""Where results meet other systems: each sub-package knows one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.integrations.exporter_page import PAGE_PREFIX, ExporterPage, PageRead, PageSeries
    from reconciler.integrations.github.api import VERIFYING, GitHubApi, github_address, github_token
    from reconciler.integrations.github.pull_requests import (
        ACTIONS,
        OpenPullRequests,
        PullRequestComments,
        newest_commit,
        pull_request_of,
        read_event,
        repository_name,
        run_link,
    )
    from reconciler.integrations.github.workflow_runs import ArtifactState, WorkflowRun, artifact_state, workflow_run
    from reconciler.integrations.gitlab.api import GitLabApi, gitlab_address, gitlab_token
    from reconciler.integrations.gitlab.merge_requests import (
        MergeRequestNotes,
        OpenMergeRequests,
        files_of,
        merge_request_of,
        project_name,
        read_job,
        read_merge_request,
    )
    from reconciler.integrations.posted_comment import Comment
    from reconciler.integrations.prometheus_api import (
        SCHEME_PREFIX,
        HttpLogin,
        PrometheusApi,
        TooManySamplesError,
        basic_auth,
    )
    from reconciler.integrations.prometheus_metrics import LabelValues, MetricsOfClusters, RunMetrics
    from reconciler.integrations.webhook import post_to_webhook

__getattr__ = lazy_face(__name__)
