"""``kafka-quotas comment``: keep one comment on a pull request or merge request true, from the plan to the end of apply."""

from __future__ import annotations

import contextlib
import datetime
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import output
from reconciler.cli.declaration import argument, option
from reconciler.cli.results import Result
from reconciler.errors import ReconcilerError, UsageError

if TYPE_CHECKING:
    from reconciler.features.pull_requests.forge import Job
    from reconciler.features.pull_requests.posting import CommentOutcome, CommentRequest
    from reconciler.features.pull_requests.sticky_comment import CommentStatus, Content
    from reconciler.render import Line

_STATES: Final = ("planned", "plan-failed", "not-changed", "applying", "applied", "failed", "outdated")
_COMMIT: Final = re.compile(r"[0-9A-Fa-f]{7,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentArguments:
    """The command line of ``comment``. Repository, address and certificates come from the environment, as in a job."""

    body: str | None = argument("BODY", nargs="?", help="the file of plan --out json=FILE [default: keep the comment's plan]")
    state: str | None = option(
        "--state",
        exclusive=True,
        choices=_STATES,
        metavar="STATE",
        help=f"set the state of the change: {', '.join(_STATES)} [default: planned]",
    )
    report: str | None = option(
        "--report", exclusive=True, metavar="FILE", help="set the state to applied or failed, from the file of apply --report"
    )
    backtest: str | None = option("--backtest", metavar="FILE", help="merge the file of backtest --out json=FILE into the plan")
    html_report: str | None = option(
        "--html-report", metavar="URL", help="link to the backtest's HTML report, such as an artifact of the workflow run"
    )
    docs_url: str | None = option("--docs-url", metavar="URL", help="link guards to this page, where {id} stands for the guard")
    cluster: str | None = option(
        "--cluster", section="Cluster", metavar="NAME", help="set the cluster of the comment, when BODY does not name it"
    )
    dry_run: bool = option("--dry-run", help="print the comment, and ask no forge")
    if_there: bool = option("--if-there", help="change an existing comment, and post no new one")
    warn_only: bool = option("--warn-only", help="exit 0 with a warning when the comment cannot be posted")
    pull_request: int | None = option(
        "--pull-request",
        "--merge-request",
        section="Forge",
        metavar="N",
        help="comment on this pull request or merge request [default: that of the job]",
    )
    commit: str | None = option("--commit", section="Forge", metavar="SHA", help="name this commit [default: that of the job]")
    author: str | None = option(
        "--author",
        section="Forge",
        metavar="LOGIN",
        help="set the login of the token, such as my-app[bot], if the forge does not report it",
    )


def run(args: CommentArguments) -> Result:
    """Post or change the comment; exit 1 when that failed, unless it is only to warn."""
    from reconciler.features.pull_requests.posting import PATIENCE, GitHub, job_forge, post_comment
    from reconciler.ports import SystemClock

    _check(args)
    kind = job_forge(os.environ) or GitHub
    job = kind.job(os.environ)
    job = replace(job, request=args.pull_request or job.request)
    if args.dry_run:
        wanted = _wanted(args, job, kind.run)
        kept = "The plan of a comment that is posted already is kept, and is not shown here."
        return Result(forms={"text": wanted.text}, notes=(kept,) if wanted.content is None else ())
    try:
        wanted = _wanted(args, job, kind.run)
        with contextlib.closing(kind.connect(os.environ, clock=SystemClock(), patience=PATIENCE)) as forge:
            outcome = post_comment(forge, job, wanted, author=args.author)
    except ReconcilerError as error:
        if not args.warn_only:
            raise
        output.tell(f"warning: no comment was posted: {error}")
        return Result()
    for problem in outcome.problems:
        output.tell(f"warning: {problem}")
    return Result(view=lambda: _lines(outcome))


def _check(args: CommentArguments) -> None:
    if args.body is None and args.state in (None, "planned") and not args.report:
        raise UsageError("a plan is posted with BODY, the file that 'plan --out json=FILE' wrote. Other states have a --state")
    if args.backtest and args.body is None:
        raise UsageError("--backtest adds to a plan: give BODY, the file that 'plan --out json=FILE' wrote, too")
    if args.commit and not _COMMIT.fullmatch(args.commit):
        raise UsageError("--commit takes the hexadecimal digits of a commit")
    if args.pull_request is not None and args.pull_request < 1:
        raise UsageError(f"--pull-request takes a number from 1 on, not {args.pull_request}")


def _wanted(args: CommentArguments, job: Job, run: str) -> CommentRequest:
    from reconciler.features.pull_requests.posting import CommentRequest

    content, status = _content(args, job), _status(args)
    return CommentRequest(
        content=content,
        status=replace(status, commit=args.commit or job.commit, link=job.link, link_name=run),
        cluster=content.marker.cluster if content is not None else args.cluster,
        only_existing=args.if_there,
    )


def _content(args: CommentArguments, job: Job) -> Content | None:
    from reconciler.cli.results import places
    from reconciler.features.pull_requests.plan_comment import body_content
    from reconciler.render import RepositoryLinks

    if args.body is None:
        return None
    files = job.files_at(args.commit or job.commit)
    return body_content(
        output.read_file(Path(args.body)),
        name=args.body,
        cluster=args.cluster,
        backtest=output.read_file(Path(args.backtest)) if args.backtest else None,
        backtest_name=args.backtest or "",
        links=RepositoryLinks(files=files, report=args.html_report, docs=args.docs_url, places=places()),
        today=datetime.datetime.now(tz=datetime.UTC).date(),
    )


def _status(args: CommentArguments) -> CommentStatus:
    from reconciler.documents import APPLY_REPORT
    from reconciler.features.pull_requests.sticky_comment import CommentState, CommentStatus
    from reconciler.model import ApplyResult
    from reconciler.render import apply_sentence

    if not args.report:
        return CommentStatus(state=CommentState(args.state or "planned"))
    report = APPLY_REPORT.read(output.read_file(Path(args.report)), name=args.report)
    done = report.result in (ApplyResult.DONE, ApplyResult.NOTHING_TO_DO)
    request = report.facts.context.pull_request if report.facts.context else None
    state = CommentState.APPLIED if done else CommentState.FAILED
    return CommentStatus(state=state, detail=apply_sentence(report, name=args.report), request=request)


def _lines(outcome: CommentOutcome) -> list[Line]:
    from reconciler.model import escaped
    from reconciler.render import line

    if not outcome.place:
        return [line(f"No comment: {escaped(outcome.reason)}.")]
    at = f": {escaped(outcome.url)}" if outcome.url else "."
    text = f"The comment on {outcome.place} is {outcome.result.value}. Its state is {outcome.state.value}{at}"
    if outcome.reason:
        text = f"The comment on {outcome.place} was left as it is: {escaped(outcome.reason)}."
    return [line(text), *([] if outcome.status is None else [line(f"The status of the commit is {outcome.status.value}.")])]
