"""A server on loopback that behaves as GitHub's REST API does for comments and pull requests.

Documents have the fields that GitHub's public OpenAPI description requires of ``issue-comment``, ``simple-user``,
``pull-request-simple``, ``basic-error`` and ``validation-error``. Faults are scripted, and used up one request at a time.
"""

from __future__ import annotations

import contextlib
import json
import os
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

from tests.support.http_servers import serving_http

REPOSITORY = "acme/quotas"
NUMBER = 7
HEAD = "a1" * 20
TOKEN = "ghs_0123456789abcdefSECRET"
BOT = "github-actions[bot]"
PREFIX = "/api/v3"
EXCHANGES = "KAFKA_QUOTAS_TEST_EXCHANGES"
"""The variable with a folder that gets what servers were asked and answered."""
_MOST_CHARACTERS = 65_536
_DOCS = "https://docs.github.com/rest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to one request in place of the answer. ``done``: it is carried out first."""

    status: int = 0
    """0 closes the connection without an answer."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: int | None = None
    """The true answer, without all bytes from here on; its length in the header stays."""
    done: bool = False
    method: str | None = None
    """Only for a request of this method; others pass until it came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A proper answer. ``document`` is JSON, or the bytes of a file."""

    status: int
    document: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


class ForgeServer:
    """The state behind a server of a forge, with one own pull request."""

    prefix: ClassVar[str]
    per_page_by_default: ClassVar[int]

    def __init__(self, token: str, bot: str) -> None:
        self.logins = {token: bot}
        self.writes = True
        self.per_page = 100
        self.comments: dict[int, dict[str, Any]] = {}
        self.files: list[dict[str, Any]] = []
        """Changed files of the own pull request, as the forge lists them."""
        self.line_comments: dict[int, dict[str, Any]] = {}
        self.pulls: list[dict[str, Any]] = []
        self.faults: list[Fault] = []
        self.requests: list[Request] = []
        self.exchanges: list[tuple[Request, Reply]] = []
        """Requests with proper answers."""
        self.before: Callable[[Request], None] = lambda request: None
        self.url = ""
        self._bot = bot
        self._lock = threading.RLock()
        self._last_id = 1_000

    def seen(self, *methods: str) -> list[Request]:
        """The requests of these methods."""
        return [one for one in self.requests if one.method in methods]

    def add(self, body: str, login: str | None = "", **more: Any) -> int:
        """A user comments; an empty name is that of the token."""
        with self._lock:
            self._last_id += 1
            self.comments[self._last_id] = {**self.comment(self._last_id, body, self._bot if login == "" else login), **more}
            return self._last_id

    def body(self, comment_id: int | None) -> str:
        """The text of a comment."""
        return str(self.comments[comment_id or 0]["body"])

    def edit(self, comment_id: int, body: str) -> None:
        """A user changes a comment, in the form on the page."""
        self.comments[comment_id]["body"] = body.replace("\n", "\r\n")

    def shown_lines(self, path: str) -> set[int]:
        """The lines of the new file that can be commented on."""
        patches = [
            each.get("patch", each.get("diff", "")) for each in self.files if path in (each.get("filename"), each.get("new_path"))
        ]
        lines, number = set(), 0
        for row in "\n".join(patches).splitlines():
            if row.startswith("@@"):
                number = int(row.partition("+")[2].split(",")[0].split(" ")[0])
            elif row[:1] in ("+", " "):
                lines.add(number)
                number += 1
        return lines

    def line_comment(self, body: str, login: str, place: Mapping[str, Any]) -> dict[str, Any]:
        """A new comment on a line."""
        with self._lock:
            self._last_id += 1
            self.line_comments[self._last_id] = {**self.comment(self._last_id, body, login), **place}
            return self.line_comments[self._last_id]

    def comment(self, number: int, body: str, login: str | None) -> dict[str, Any]:
        """The document of a comment."""
        raise NotImplementedError

    def answer(self, request: Request) -> Reply:
        """What the forge answers to a request."""
        raise NotImplementedError

    def status(self, name: str, commit: str = HEAD) -> str | None:
        """The status that a commit shows by this name."""
        raise NotImplementedError

    def page(self, items: list[Any], request: Request, query: Mapping[str, str]) -> Reply:
        """One page of a list, with links to others."""
        size, page = min(int(query.get("per_page", self.per_page_by_default)), self.per_page), int(query.get("page", 1))
        last = max(1, -(-len(items) // size))
        base = f"{self.url.removesuffix(self.prefix)}{request.path.partition('?')[0]}"
        places = {"prev": page - 1, "next": page + 1 if page < last else 0, "first": 1, "last": last}
        links = [f'<{base}?{urllib.parse.urlencode({**query, "page": at})}>; rel="{rel}"' for rel, at in places.items() if at]
        return Reply(status=200, document=items[(page - 1) * size : page * size], headers={"link": ", ".join(links)})


class GitHubServer(ForgeServer):
    """``identity``: the token may ask who it is, as that of a workflow may not."""

    prefix = PREFIX
    per_page_by_default = 30

    def __init__(self) -> None:
        super().__init__(TOKEN, BOT)
        self.identity = False
        self.pulls = [pull_request(NUMBER, HEAD)]
        self.head_of: Callable[[str], str] = lambda branch: HEAD
        """The newest commit of a branch of the repository."""
        self.reviews: list[dict[str, Any]] = []
        self.runs: dict[int, dict[str, Any]] = {}
        self.artifacts: dict[int, set[str]] = {}
        self.checks: list[dict[str, Any]] = []
        self.checking = True
        """Whether the token may write check runs."""
        self.expired: set[str] = set()
        """Names of artifacts that GitHub lists and has deleted."""

    def answer(self, request: Request) -> Reply:
        """What GitHub answers to a request."""
        login = self.logins.get(request.headers.get("authorization", "").removeprefix("token "))
        if login is None:
            return refused(401, "Bad credentials")
        url = urllib.parse.urlsplit(request.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        path = url.path.removeprefix(PREFIX)
        if path == "/user":
            return Reply(status=200, document=user(login)) if self.identity else _not_for_integrations("metadata=read")
        if request.method != "GET" and not self.writes:
            return _not_for_integrations("issues=write; pull_requests=write")
        with self._lock:
            return self._route(request, path.removeprefix(f"/repos/{REPOSITORY}"), query, login)

    def _route(self, request: Request, path: str, query: Mapping[str, str], login: str) -> Reply:
        parts = path.split("/")[1:]
        if not parts:
            return Reply(status=200, document={"full_name": REPOSITORY, "default_branch": "main"})
        reply = self._pulls(request, parts, query) if request.method == "GET" else self._write(request, parts, login)
        return reply or refused(404, "Not Found")

    def _write(self, request: Request, parts: list[str], login: str) -> Reply | None:  # noqa: PLR0911 - one case a request
        match request.method, parts:
            case "POST", ["check-runs"]:
                return self._check_run(request.body) if self.checking else _not_for_integrations("checks=write")
            case "POST", ["pulls", number, "comments"] if number == str(NUMBER):
                return self._review(request, login)
            case "PATCH", ["pulls", "comments", comment] if int(comment) in self.line_comments:
                self.line_comments[int(comment)]["body"] = request.body["body"]
                return Reply(status=200, document=self.line_comments[int(comment)])
            case "DELETE", ["pulls", "comments", comment] if self.line_comments.pop(int(comment), None):
                return Reply(status=204)
            case "POST", ["issues", number, "comments"] if number == str(NUMBER):
                return _bad_body(request) or Reply(status=201, document=self.comments[self.add(request.body["body"], login)])
            case "PATCH", ["issues", "comments", comment] if int(comment) in self.comments:
                bad = _bad_body(request)
                self.comments[int(comment)] |= {} if bad else {"body": request.body["body"]}
                return bad or Reply(status=200, document=self.comments[int(comment)])
            case "DELETE", ["issues", "comments", comment] if self.comments.pop(int(comment), None):
                return Reply(status=204)
        return self._propose(request, parts)

    def _propose(self, request: Request, parts: list[str]) -> Reply | None:
        match request.method, parts:
            case "POST", ["pulls"]:
                return self._open(request.body)
            case "PATCH", ["pulls", number]:
                (pull,) = [one for one in self.pulls if one["number"] == int(number)]
                pull |= request.body
                return Reply(status=200, document=pull)
        return None

    def _open(self, body: dict[str, str]) -> Reply:
        label = f"{REPOSITORY.partition('/')[0]}:{body['head']}"
        if any((one["state"], one["head"]["label"]) == ("open", label) for one in self.pulls):
            errors = [{"resource": "PullRequest", "code": "custom", "message": f"A pull request already exists for {label}."}]
            return Reply(status=422, document={"message": "Validation Failed", "errors": errors, "documentation_url": _DOCS})
        made = pull_request(len(self.pulls) + 100, self.head_of(body["head"]), label=label)
        self.pulls.insert(0, {**made, "title": body["title"], "body": body["body"]})
        return Reply(status=201, document=self.pulls[0])

    def _check_run(self, body: dict[str, Any]) -> Reply:
        number = len(self.checks) + 1
        self.checks.append({"id": number, "html_url": f"https://github.example.org/{REPOSITORY}/runs/{number}", **body})
        return Reply(status=201, document=self.checks[-1])

    def _review(self, request: Request, login: str) -> Reply:
        body = request.body
        if body["line"] not in self.shown_lines(body["path"]) or body["side"] != "RIGHT":
            errors = [
                {
                    "resource": "PullRequestReviewComment",
                    "code": "custom",
                    "message": "pull_request_review_thread.line must be part of the diff",
                }
            ]
            return Reply(status=422, document={"message": "Validation Failed", "errors": errors, "documentation_url": _DOCS})
        place = {"path": body["path"], "line": body["line"], "commit_id": body["commit_id"], "side": body["side"]}
        return Reply(status=201, document=self.line_comment(body["body"], login, place))

    def status(self, name: str, commit: str = HEAD) -> str | None:
        """The conclusion that a commit shows: of the newest check run of this name."""
        runs = [run for run in self.checks if (run["name"], run["head_sha"]) == (name, commit)]
        return str(runs[-1]["conclusion"]) if runs else None

    def _pulls(self, request: Request, parts: list[str], query: Mapping[str, str]) -> Reply | None:
        listed: list[Any] | None = None
        match parts:
            case ["issues", number, "comments"] if number == str(NUMBER):
                listed = list(self.comments.values())
            case ["pulls"]:
                listed = [_in_list(one) for one in self.pulls if one["head"]["label"] == query.get("head")]
            case ["pulls", number, "reviews"] if number == str(NUMBER):
                listed = self.reviews
            case ["commits", commit, "pulls"]:
                listed = [_in_list(one) for one in self.pulls if commit in (one["head"]["sha"], one["merge_commit_sha"])]
            case ["pulls", number, "files"] if number == str(NUMBER):
                listed = self.files
            case ["pulls", number, "comments"] if number == str(NUMBER):
                listed = list(self.line_comments.values())
            case ["pulls", number] if number == str(NUMBER):
                return Reply(status=200, document=self.pulls[0])
            case ["actions", "runs", number] if int(number) in self.runs:
                return Reply(status=200, document=self.runs[int(number)])
            case ["actions", "runs", number, "artifacts"] if int(number) in self.runs:
                names = sorted(name for name in self.artifacts.get(int(number), ()) if name == query.get("name", name))
                rows = [{"name": name, "expired": name in self.expired} for name in names]
                return Reply(status=200, document={"total_count": len(rows), "artifacts": rows})
        return None if listed is None else self.page(listed, request, query)

    def comment(self, number: int, body: str, login: str | None) -> dict[str, Any]:
        """An ``issue-comment``."""
        return {
            "id": number,
            "html_url": f"https://github.example.org/{REPOSITORY}/pull/{NUMBER}#issuecomment-{number}",
            "body": body,
            "user": user(login) if login else None,
            "created_at": "2026-01-02T12:00:00Z",
            "author_association": "NONE",
        }


def user(login: str) -> dict[str, Any]:
    """A ``simple-user``."""
    return {"login": login, "id": sum(login.encode()), "type": "Bot" if login.endswith("[bot]") else "User"}


def workflow_run(number: int, *, event: str, commit: str, workflow: str = "quotas-apply.yml") -> dict[str, Any]:
    """A run on main, with the fields that tell where its workflow came from."""
    return {
        "id": number,
        "event": event,
        "head_sha": commit,
        "head_branch": "main",
        "path": f".github/workflows/{workflow}",
        "head_repository": {"full_name": REPOSITORY},
    }


def pull_request(number: int, head: str, *, label: str = "acme:change", merged_as: str | None = None) -> dict[str, Any]:
    """What is read of a ``pull-request-simple``."""
    owner = label.partition(":")[0]
    return {
        "id": number,
        "number": number,
        "state": "closed" if merged_as else "open",
        "title": "quotas",
        "head": {"label": label, "ref": label.partition(":")[2], "sha": head, "repo": {"full_name": f"{owner}/quotas"}},
        "base": {"label": "acme:main", "ref": "main", "sha": "0" * 40},
        "merged_at": "2026-01-02T13:00:00Z" if merged_as else None,
        "merge_commit_sha": merged_as or "f" * 40,
        "html_url": f"https://github.example.org/{REPOSITORY}/pull/{number}",
        "user": user("author"),
        "merged_by": user("merger") if merged_as else None,
    }


def _in_list(pull: dict[str, Any]) -> dict[str, Any]:
    """A ``pull-request-simple``, which lacks a field that the pull request itself has."""
    return {name: value for name, value in pull.items() if name != "merged_by"}


def review(login: str, state: str) -> dict[str, Any]:
    """A ``pull-request-review``."""
    return {"id": sum(login.encode()), "user": user(login), "body": "", "state": state, "submitted_at": "2026-01-02T12:30:00Z"}


def refused(status: int, message: str, **headers: str) -> Reply:
    """A ``basic-error``."""
    return Reply(status=status, document={"message": message, "documentation_url": _DOCS, "status": str(status)}, headers=headers)


def _not_for_integrations(needed: str) -> Reply:
    return refused(403, "Resource not accessible by integration", **{"x-accepted-github-permissions": needed})


def _bad_body(request: Request) -> Reply | None:
    body = request.body.get("body") if isinstance(request.body, dict) else None
    if not isinstance(body, str) or not body.strip():
        words = "Body cannot be blank"
    elif len(body) > _MOST_CHARACTERS:
        words = f"body is too long (maximum is {_MOST_CHARACTERS} characters)"
    else:
        return None
    errors = [{"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": words}]
    return Reply(status=422, document={"message": "Validation Failed", "errors": errors, "documentation_url": _DOCS})


@contextlib.contextmanager
def github_server(tls: ssl.SSLContext | None = None) -> Iterator[GitHubServer]:
    """The server, on a free port, for as long as the block lasts."""
    state = GitHubServer()
    with serving(state, tls=tls):
        yield state


@contextlib.contextmanager
def serving(state: ForgeServer, *, tls: ssl.SSLContext | None = None) -> Iterator[None]:
    """Answer requests on a free port of loopback."""
    with serving_http(_Handler, tls=tls, state=state) as port:
        state.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}{state.prefix}"
        yield
    _keep_exchanges(state)


def _keep_exchanges(state: ForgeServer) -> None:
    """In a file of this process, where a test asks for them."""
    folder = os.environ.get(EXCHANGES)
    if folder is None:
        return
    with Path(folder, f"{type(state).__name__}-{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
        for request, reply in state.exchanges:
            path = request.path.removeprefix(state.prefix)
            row = {
                "method": request.method,
                "path": path,
                "body": request.body,
                "status": reply.status,
                "document": reply.document,
            }
            file.write(json.dumps(row) + "\n")


class _Handler(BaseHTTPRequestHandler):
    state: ForgeServer

    protocol_version = "HTTP/1.1"
    timeout = 20
    wbufsize = 65_536

    def handle_any(self) -> None:
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        request = Request(
            method=self.command,
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=json.loads(content) if content else None,
        )
        self.state.requests.append(request)
        self.state.before(request)
        fault = self.state.faults[0] if self.state.faults and self.state.faults[0].method in (None, self.command) else None
        if fault is None:
            reply = self.state.answer(request)
            self.state.exchanges.append((request, reply))
            self.reply(reply)
            return
        self.state.faults.pop(0)
        self.spoil(fault, self.state.answer(request) if fault.done or fault.cut is not None else None)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 - the names that the standard library looks for

    def reply(self, reply: Reply, cut: int | None = None) -> None:
        file = isinstance(reply.document, bytes)
        content = reply.document if file else b"" if reply.document is None else json.dumps(reply.document).encode()
        headers = {"content-type": "application/json; charset=utf-8"} if content and not file else {}
        self.write(reply.status, {**headers, **reply.headers}, content, cut)

    def spoil(self, fault: Fault, reply: Reply | None) -> None:
        if fault.cut is not None and reply is not None:
            self.reply(reply, fault.cut)
            self.close_connection = True
        elif fault.status == 0:
            self.close_connection = True
        else:
            self.write(fault.status, fault.headers, fault.body)

    def write(self, status: int, headers: Mapping[str, str], content: bytes, cut: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content if cut is None else content[:cut])
