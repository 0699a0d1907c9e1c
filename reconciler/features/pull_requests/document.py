"""What became of a comment, as a document."""

from __future__ import annotations

from typing import Final

from reconciler.documents import VALUES, Document, row
from reconciler.features.pull_requests.posting import CommentOutcome, PullRequestOutcome
from reconciler.features.pull_requests.verify_ref import StoredReference


def result_of_comment(outcome: PullRequestOutcome) -> str:
    """Return what was done: created, updated, unchanged, left, no_pull_request, or dry_run with --dry-run."""
    return outcome.comment.result.value if outcome.comment else "no_pull_request"


def reason_of_result(outcome: PullRequestOutcome) -> str | None:
    """Return why the comment was left, or why there is none. ``None`` otherwise."""
    return (outcome.comment.reason if outcome.comment else outcome.reason) or None


def ids_of_strangers(comment: CommentOutcome) -> tuple[int, ...]:
    """Ids of comments by other authors that have the marker of this one, and were not touched."""
    return tuple(stranger.id for stranger in comment.strangers)


def body_of_dry_run(_: PullRequestOutcome) -> str | None:
    """The comment as Markdown. Only with --dry-run, which posts nothing."""
    return None


COMMENT: Final = Document(
    cls=PullRequestOutcome,
    name="comment",
    title="kafka-quotas comment",
    codec=VALUES.extended(
        {
            CommentOutcome: row("state cluster label author id url edited folded ignored", ignored=ids_of_strangers),
            PullRequestOutcome: row(
                "forge repository pull_request result *comment? status suggestions reason body?",
                result=result_of_comment,
                reason=reason_of_result,
                body=body_of_dry_run,
            ),
        }
    ),
)
STORED: Final = Document(
    cls=StoredReference,
    name="verify-ref",
    title="kafka-quotas tool verify-ref",
    codec=VALUES.extended({StoredReference: row("ref commit run run_commit")}),
)
