"""``kafka-quotas comment``: keep one comment on a pull request or merge request true, from the plan to the end of apply."""

from __future__ import annotations

import datetime
import os
import re
import sys
from argparse import SUPPRESS
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import output
from reconciler.cli.declaration import argument, group, option
from reconciler.cli.option_groups import format_option
from reconciler.cli.results import Result
from reconciler.errors import FileAccessError, ReconcilerError, UsageError

if TYPE_CHECKING:
    from reconciler.features.pull_requests.posting import CommentRequest, CommentTarget, PullRequestOutcome
    from reconciler.features.pull_requests.sticky_comment import CommentStatus, Content
    from reconciler.formats import Json
    from reconciler.render import Line

_STATES: Final = ("planned", "plan-failed", "not-changed", "applying", "applied", "failed", "outdated")
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/-]{0,59}")
_COMMIT: Final = re.compile(r"[0-9A-Fa-f]{7,64}")
_LONGEST_WAIT: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PostOptions:
    """Whether and where the comment is posted."""

    dry_run: bool = option("--dry-run", help="print the comment, and ask no forge")
    if_there: bool = option("--if-there", help="change an existing comment, and post no new one")
    warn_only: bool = option("--warn-only", help="exit 0 with a warning when the comment cannot be posted")
    forge: str | None = option(
        "--forge",
        section="Forge",
        choices=("github", "gitlab"),
        metavar="FORGE",
        help="comment on github or gitlab [default: the one that runs this job, else github]",
    )
    pull_request: int | None = option(
        "--pull-request",
        "--merge-request",
        section="Forge",
        metavar="N",
        help="comment on this pull request or merge request [default: that of the job]",
    )
    commit: str | None = option("--commit", section="Forge", metavar="SHA", help="name this commit [default: that of the job]")
    token_file: Path | None = option(
        "--token-file",
        section="Forge",
        metavar="FILE",
        help="read the token from this file [default: GITHUB_TOKEN or GITLAB_TOKEN]",
    )
    # Otherwise argparse takes --token for --token-file, and the message about the missing file would repeat the token.
    given_token: str | None = option("--token", section="Forge", nargs="?", const="", help=SUPPRESS)
    author: str | None = option(
        "--author",
        section="Forge",
        metavar="LOGIN",
        help="set the login of the token, such as my-app[bot], if the forge does not report it",
    )
    wait: float = option(
        "--wait",
        section="Forge",
        default=120.0,
        metavar="SECONDS",
        help="wait up to this long for rate limits and faults, in all [default: 120]",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentArguments:
    """The command line of ``comment``. Repository, address and certificates come from the environment, as in a job."""

    body: str | None = argument(
        "BODY",
        nargs="?",
        help="the file of plan --out json=FILE, or - for standard input [default: keep the comment's plan]",
    )
    state: str | None = option(
        "--state",
        exclusive=True,
        choices=_STATES,
        metavar="STATE",
        help=f"set the state of the change: {', '.join(_STATES)} [default: planned]",
    )
    report: str | None = option(
        "--report",
        exclusive=True,
        metavar="FILE",
        help="set the state to applied or failed, from the file of apply --report",
    )
    backtest: str | None = option("--backtest", metavar="FILE", help="merge the file of backtest --out json=FILE into the plan")
    html_report: str | None = option(
        "--html-report", metavar="URL", help="link to the backtest's HTML report, such as an artifact of the workflow run"
    )
    docs_url: str | None = option("--docs-url", metavar="URL", help="link guards to this page, where {id} stands for the guard")
    label: str = option("--label", default="", metavar="WORD", help="keep a comment of its own under this label")
    cluster: str | None = option(
        "--cluster", section="Cluster", metavar="NAME", help="set the cluster of the comment, when BODY does not name it"
    )
    post: PostOptions = group(PostOptions)
    format: str = format_option()


def run(args: CommentArguments) -> Result:
    """Post or change the comment; exit 1 when that failed, unless it is only to warn."""
    from reconciler.features.pull_requests.document import COMMENT

    _check(args)
    if args.post.dry_run:
        return _dry_run(args)
    try:
        outcome = _posted(args)
    except ReconcilerError as error:
        if not args.post.warn_only:
            raise
        output.tell(f"warning: no comment was posted: {error}")
        return Result()
    for warning in outcome.warnings():
        output.tell(f"warning: {warning}")
    return Result(view=lambda: _lines(outcome), document=lambda: COMMENT.write(outcome))


def _check(args: CommentArguments) -> None:
    if args.post.given_token is not None:
        raise UsageError(
            "every user of this machine can read a token on the command line. Set GITHUB_TOKEN or GITLAB_TOKEN, or --token-file"
        )
    if args.body is None and args.state in (None, "planned") and not args.report:
        raise UsageError("a plan is posted with BODY, the file that 'plan --out json=FILE' wrote. Other states have a --state")
    if args.backtest and args.body is None:
        raise UsageError("--backtest adds to a plan: give BODY, the file that 'plan --out json=FILE' wrote, too")
    if args.label and not _LABEL.fullmatch(args.label):
        raise UsageError("--label takes up to 60 letters, digits, blanks and . _ / -, beginning with a letter or digit")
    if args.post.commit and not _COMMIT.fullmatch(args.post.commit):
        raise UsageError("--commit takes the hexadecimal digits of a commit")
    if args.post.pull_request is not None and args.post.pull_request < 1:
        raise UsageError(f"--pull-request takes a number from 1 on, not {args.post.pull_request}")
    if not 0 <= args.post.wait <= _LONGEST_WAIT:
        raise UsageError(f"--wait takes seconds from 0 to {_LONGEST_WAIT:g}, not {args.post.wait:g}")


def _target(args: CommentArguments) -> CommentTarget:
    from reconciler.features.pull_requests.posting import CommentTarget, ForgeName, forge_here

    return CommentTarget(
        environment=os.environ,
        forge=ForgeName(args.post.forge) if args.post.forge else forge_here(os.environ),
        pull_request=args.post.pull_request,
        token_file=args.post.token_file,
        author=args.post.author,
    )


def _wanted(args: CommentArguments, target: CommentTarget) -> CommentRequest:
    from reconciler.features.pull_requests.posting import CommentRequest

    return CommentRequest(
        content=_content(args, target),
        status=_status(args),
        cluster=args.cluster,
        label=args.label,
        only_existing=args.post.if_there,
    )


def _posted(args: CommentArguments) -> PullRequestOutcome:
    from reconciler.features.pull_requests.posting import post_comment
    from reconciler.ports import SystemClock

    target = _target(args)
    return post_comment(target, _wanted(args, target), clock=SystemClock(), patience=args.post.wait)


def _dry_run(args: CommentArguments) -> Result:
    """The comment as Markdown, or in a document; nothing is asked, so a comment that is there adds nothing to it."""
    from reconciler.features.pull_requests.document import COMMENT
    from reconciler.features.pull_requests.posting import PullRequestOutcome, comment_text

    target = _target(args)
    wanted = _wanted(args, target)
    text = comment_text(target, wanted)
    outcome = PullRequestOutcome(
        forge=target.forge,
        repository=None,
        pull_request=args.post.pull_request,
        comment=None,
        reason="--dry-run posts nothing",
    )
    about: dict[str, Json] = {
        "result": "dry_run",
        "state": wanted.status.state.value,
        "cluster": wanted.address[0],
        "label": args.label,
        "body": text,
    }
    kept = "The plan of a comment that is posted already is kept, and is not shown here."
    return Result(
        document=lambda: COMMENT.write(outcome) | about,
        forms={"text": lambda: text},
        notes=(kept,) if wanted.content is None else (),
    )


def _content(args: CommentArguments, target: CommentTarget) -> Content | None:
    from reconciler.cli.results import places
    from reconciler.features.pull_requests.plan_comment import body_content
    from reconciler.features.pull_requests.posting import comment_links

    if args.body is None:
        return None
    text = _body_text(args.body)
    return body_content(
        text,
        name="standard input" if args.body == "-" else args.body,
        about=(args.cluster, args.label),
        backtest=output.read_file(Path(args.backtest)) if args.backtest else None,
        backtest_name=args.backtest or "",
        links=comment_links(target, commit=args.post.commit, report=args.html_report, docs=args.docs_url, places=places()),
        today=datetime.datetime.now(tz=datetime.UTC).date(),
    )


def _body_text(name: str) -> str:
    if name != "-":
        return output.read_file(Path(name))
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileAccessError("cannot read standard input: not UTF-8 text") from error


def _status(args: CommentArguments) -> CommentStatus:
    from reconciler.documents import APPLY_SUMMARY
    from reconciler.features.pull_requests.sticky_comment import CommentState, CommentStatus
    from reconciler.model import ApplyResult
    from reconciler.render import apply_sentence

    if not args.report:
        return CommentStatus(state=CommentState(args.state or "planned"), commit=args.post.commit)
    report = APPLY_SUMMARY.read(output.read_file(Path(args.report)), name=args.report)
    idle = report.result is ApplyResult.NOTHING_TO_DO and not report.withheld
    state = CommentState.APPLIED if idle else CommentState.FAILED
    if report.result is ApplyResult.DONE:
        state = CommentState.APPLIED_IN_PART if report.withheld else CommentState.APPLIED
    request = report.context.pull_request if report.context else None
    return CommentStatus(state=state, detail=apply_sentence(report, name=args.report), commit=args.post.commit, request=request)


def _lines(outcome: PullRequestOutcome) -> list[Line]:
    from reconciler.model import escaped
    from reconciler.render import line

    comment = outcome.comment
    if comment is None:
        return [line(f"No comment: {escaped(outcome.reason)}.")]
    where = f"on {outcome.forge.forge.request} {outcome.pull_request} of {outcome.repository}"
    at = f": {escaped(comment.url)}" if comment.url else "."
    text = f"The comment {where} is {comment.result.value}. Its state is {comment.state.value}{at}"
    if comment.reason:
        text = f"The comment {where} was left as it is: {escaped(comment.reason)}."
    return [line(text), *([] if outcome.status is None else [line(f"The status of the commit is {outcome.status.value}.")])]
