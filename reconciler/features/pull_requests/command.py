"""``kafka-quotas comment``: keep one comment on a pull request or merge request true, from the plan to the end of apply."""

from __future__ import annotations

import argparse
import datetime
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import OutputArguments, typed
from reconciler.errors import FileAccessError, ReconcilerError, UsageError

if TYPE_CHECKING:
    from reconciler.features.pull_requests.forges import CommentTarget, PullRequestOutcome
    from reconciler.features.pull_requests.sticky_comment import CommentStatus, Content
    from reconciler.formats import Json
    from reconciler.render import Line

_STATES: Final = ("planned", "plan-failed", "applying", "applied", "failed", "outdated")
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/-]{0,59}")
_COMMIT: Final = re.compile(r"[0-9A-Fa-f]{7,64}")
_LONGEST_WAIT: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentArguments(OutputArguments):
    """The command line of ``comment``."""

    body: str | None
    state: str | None
    report: str | None
    backtest: str | None
    html_report: str | None
    docs_url: str | None
    cluster: str | None
    label: str
    commit: str | None
    forge: str | None
    dry_run: bool
    repository: str | None
    pull_request: int | None
    api_url: str | None
    token_file: Path | None
    ca_file: Path | None
    given_token: str | None
    author: str | None
    wait: float
    if_there: bool
    warn_only: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``comment``."""
    parser.add_argument(
        "body",
        nargs="?",
        metavar="BODY",
        help="the file of plan --out json=FILE, or - for standard input [default: keep the comment's plan]",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--state", choices=_STATES, metavar="STATE", help=f"set the state of the change: {', '.join(_STATES)} [default: planned]"
    )
    what.add_argument("--report", metavar="FILE", help="set the state to applied or failed, from the file of apply --report")
    parser.add_argument("--backtest", metavar="FILE", help="merge the file of backtest --out json=FILE into the plan")
    parser.add_argument(
        "--html-report", metavar="URL", help="link to the backtest's HTML report, such as an artifact of the workflow run"
    )
    parser.add_argument("--docs-url", metavar="URL", help="link guards to this page, where {id} stands for the guard")
    parser.add_argument("--label", default="", metavar="WORD", help="keep a comment of its own under this label")
    parser.add_argument("--dry-run", action="store_true", help="print the comment, and ask no forge")
    parser.add_argument("--if-there", action="store_true", help="change an existing comment, and post no new one")
    parser.add_argument("--warn-only", action="store_true", help="exit 0 with a warning when the comment cannot be posted")
    options.add_cluster_option(parser, "set the cluster of the comment, when BODY does not name it")
    forge = options.add_forge_options(parser, wait=120.0)
    forge.add_argument("--commit", metavar="SHA", help="name this commit [default: that of the job]")
    forge.add_argument(
        "--pull-request",
        "--merge-request",
        type=int,
        metavar="N",
        help="comment on this pull request or merge request [default: that of the job]",
    )
    # Else --token would be short for --token-file, and its value in the message that there is no such file.
    forge.add_argument("--token", nargs="?", dest="given_token", const="", help=argparse.SUPPRESS)
    forge.add_argument(
        "--author", metavar="LOGIN", help="set the login of the token, such as my-app[bot], if the forge does not report it"
    )
    options.add_output_options(parser)


def parse(namespace: argparse.Namespace) -> CommentArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(CommentArguments, namespace)


def run(args: CommentArguments) -> int:
    """Post or change the comment; 1 when that failed, unless it is only to warn."""
    from reconciler.features.pull_requests.document import COMMENT

    _check(args)
    if args.dry_run:
        return _print_dry_run(args)
    try:
        outcome = _posted(args)
    except ReconcilerError as error:
        if not args.warn_only:
            raise
        output.tell(f"warning: no comment was posted: {error}")
        return exit_codes.DONE
    for warning in outcome.warnings():
        output.tell(f"warning: {warning}")
    output.print_result(args, document=lambda: COMMENT.write(outcome), lines=lambda: _lines(outcome))
    return exit_codes.DONE


def _check(args: CommentArguments) -> None:
    if args.given_token is not None:
        raise UsageError(
            "every user of this machine can read a token on the command line. Set GITHUB_TOKEN or GITLAB_TOKEN, or --token-file"
        )
    if args.body is None and args.state in (None, "planned") and not args.report:
        raise UsageError("a plan is posted with BODY, the file that 'plan --out json=FILE' wrote. Other states have a --state")
    if args.backtest and args.body is None:
        raise UsageError("--backtest adds to a plan: give BODY, the file that 'plan --out json=FILE' wrote, too")
    if args.label and not _LABEL.fullmatch(args.label):
        raise UsageError("--label takes up to 60 letters, digits, blanks and . _ / -, beginning with a letter or digit")
    if args.commit and not _COMMIT.fullmatch(args.commit):
        raise UsageError("--commit takes the hexadecimal digits of a commit")
    if args.pull_request is not None and args.pull_request < 1:
        raise UsageError(f"--pull-request takes a number from 1 on, not {args.pull_request}")
    if not 0 <= args.wait <= _LONGEST_WAIT:
        raise UsageError(f"--wait takes seconds from 0 to {_LONGEST_WAIT:g}, not {args.wait:g}")


def _target(args: CommentArguments) -> CommentTarget:
    from reconciler.features.pull_requests.forges import CommentTarget, Forge, forge_here

    return CommentTarget(
        environment=os.environ,
        forge=Forge(args.forge) if args.forge else forge_here(os.environ),
        repository=args.repository,
        pull_request=args.pull_request,
        api_url=args.api_url,
        token_file=args.token_file,
        ca_file=args.ca_file,
        author=args.author,
    )


def _posted(args: CommentArguments) -> PullRequestOutcome:
    from reconciler.features.pull_requests.forges import post_comment
    from reconciler.workflows import SystemClock

    target = _target(args)
    content, status = _content(args, target), _status(args)
    return post_comment(
        target,
        content,
        status,
        cluster=args.cluster,
        label=args.label,
        clock=SystemClock(),
        patience=args.wait,
        only_existing=args.if_there,
    )


def _print_dry_run(args: CommentArguments) -> int:
    """The comment as Markdown, or in a document; nothing is asked, so a comment that is there adds nothing to it."""
    from reconciler.features.pull_requests.document import COMMENT
    from reconciler.features.pull_requests.forges import PullRequestOutcome, comment_text
    from reconciler.formats import document_text

    target = _target(args)
    content, status = _content(args, target), _status(args)
    text = comment_text(target, content, status, cluster=args.cluster, label=args.label)
    if args.format == "json":
        outcome = PullRequestOutcome(
            forge=target.forge,
            repository=args.repository,
            pull_request=args.pull_request,
            comment=None,
            reason="--dry-run posts nothing",
        )
        about: dict[str, Json] = {
            "result": "dry_run",
            "state": status.state.value,
            "cluster": content.marker.cluster if content else args.cluster,
            "label": args.label,
            "body": text,
        }
        text = document_text(COMMENT.write(outcome) | about)
    output.print_text(text, sys.stdout)
    if content is None:
        output.tell("The plan of a comment that is posted already is kept, and is not shown here.")
    return exit_codes.DONE


def _content(args: CommentArguments, target: CommentTarget) -> Content | None:
    from reconciler.cli.renderings import places
    from reconciler.documents import BACKTEST
    from reconciler.features.pull_requests.comment import body_content, read_body
    from reconciler.features.pull_requests.forges import comment_links

    if args.body is None:
        return None
    body = read_body(_body_text(args.body), name="standard input" if args.body == "-" else args.body)
    report = BACKTEST.read(output.read_file(Path(args.backtest)), name=args.backtest) if args.backtest else None
    links = comment_links(target, commit=args.commit, report=args.html_report, docs=args.docs_url, places=places())
    name = args.backtest or ""
    today = datetime.datetime.now(tz=datetime.UTC).date()
    return body_content(body, cluster=args.cluster, label=args.label, report=report, report_name=name, links=links, today=today)


def _body_text(name: str) -> str:
    if name != "-":
        return output.read_file(Path(name))
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileAccessError("cannot read standard input: not UTF-8 text") from error


def _status(args: CommentArguments) -> CommentStatus:
    from reconciler.documents import APPLY_SUMMARY
    from reconciler.features.pull_requests.comment import state_of_report
    from reconciler.features.pull_requests.sticky_comment import CommentState, CommentStatus
    from reconciler.render import apply_sentence

    if args.report:
        report = APPLY_SUMMARY.read(output.read_file(Path(args.report)), name=args.report)
        return CommentStatus(state=state_of_report(report), detail=apply_sentence(report, name=args.report), commit=args.commit)
    return CommentStatus(state=CommentState(args.state or "planned"), commit=args.commit)


def _lines(outcome: PullRequestOutcome) -> list[Line]:
    from reconciler.features.pull_requests.forges import REQUEST_NAMES
    from reconciler.model import escaped
    from reconciler.render import line

    comment = outcome.comment
    if comment is None:
        return [line(f"No comment: {escaped(outcome.reason)}.")]
    where = f"on {REQUEST_NAMES[outcome.forge]} {outcome.pull_request} of {outcome.repository}"
    if comment.reason:
        return [line(f"The comment {where} was left as it is: {escaped(comment.reason)}.")]
    at = f": {escaped(comment.url)}" if comment.url else "."
    return [line(f"The comment {where} is {comment.result.value}. Its state is {comment.state.value}{at}")]
