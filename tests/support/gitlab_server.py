"""A server on loopback that behaves as GitLab's REST API does for merge requests and their notes.

Documents have the fields of GitLab's public API documentation ("Notes API", "Merge requests API", "Commits API", "Users API"),
errors its three forms: a text, lists by field, and ``error`` with ``error_description``. Faults are scripted, and used up one
request at a time.
"""

from __future__ import annotations

import contextlib
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.support.github_server import Fault, Reply, Request, serving

PROJECT = "acme/platform/quotas"
PROJECT_ID = "31"
NUMBER = 7
HEAD = "a1" * 20
TOKEN = "glpat-0123456789abcdefSECRET"
BOT = "project_31_bot_7c5e"
PREFIX = "/api/v4"
_MOST_CHARACTERS = 1_000_000


class GitLabServer:
    """The state behind it. ``writes``: the token has the scope api."""

    def __init__(self) -> None:
        self.users = {TOKEN: BOT}
        self.writes = True
        self.per_page = 100
        self.notes: dict[int, dict[str, Any]] = {}
        self.elsewhere: dict[int, list[dict[str, Any]]] = {}
        self.merge_requests = [merge_request(NUMBER, HEAD)]
        self.faults: list[Fault] = []
        self.requests: list[Request] = []
        self.before: Callable[[Request], None] = lambda request: None
        self.url = ""
        self._lock = threading.RLock()
        self._last_id = 300

    def seen(self, method: str) -> list[Request]:
        """The requests of one method."""
        return [request for request in self.requests if request.method == method]

    def add(self, body: str, name: str = BOT, *, system: bool = False) -> int:
        """A user writes a note."""
        with self._lock:
            self._last_id += 1
            self.notes[self._last_id] = note(self._last_id, body, name, system=system)
            return self._last_id

    def open_beside(self, number: int, *bodies: str, name: str = BOT) -> None:
        """Another open merge request with these notes."""
        self.merge_requests.append(merge_request(number, "b2" * 20))
        self.elsewhere[number] = [note(number * 1_000 + n, body, name) for n, body in enumerate(bodies)]

    def body(self, note_id: int) -> str:
        """The text of a note."""
        return str(self.notes[note_id]["body"])

    def answer(self, request: Request) -> Reply:
        """What GitLab answers to a request."""
        name = self.users.get(request.headers.get("private-token", ""))
        if name is None:
            return Reply(status=401, document={"message": "401 Unauthorized"})
        url = urllib.parse.urlsplit(request.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        # A project's path is one part of the address, its slashes quoted.
        parts = [urllib.parse.unquote(part) for part in url.path.removeprefix(PREFIX).split("/")[1:]]
        if parts == ["user"]:
            return Reply(status=200, document=user(name))
        if parts[:1] != ["projects"] or parts[1] not in (PROJECT, PROJECT_ID):
            return Reply(status=404, document={"message": "404 Project Not Found"})
        if request.method != "GET" and not self.writes:
            scope = {"error": "insufficient_scope", "error_description": "The request requires higher privileges", "scope": "api"}
            return Reply(status=403, document=scope)
        with self._lock:
            reply = self._read(request, parts[2:], query) if request.method == "GET" else self._write(request, parts[2:], name)
        return reply or Reply(status=404, document={"message": "404 Not found"})

    def _read(self, request: Request, parts: list[str], query: Mapping[str, str]) -> Reply | None:
        match parts:
            case ["merge_requests", number] if number == str(NUMBER):
                return Reply(status=200, document=self.merge_requests[0])
            case ["merge_requests", number, "notes"] if number == str(NUMBER):
                return self._page(list(self.notes.values()), request, query)
            case ["merge_requests"]:
                wanted = query["state"], query["target_branch"]
                listed = [one for one in self.merge_requests if (one["state"], one["target_branch"]) == wanted]
                return self._page(listed, request, query)
            case ["merge_requests", number, "notes"] if int(number) in self.elsewhere:
                return self._page(self.elsewhere[int(number)], request, query)
            case ["repository", "commits", commit, "merge_requests"]:
                fields = ("sha", "merge_commit_sha", "squash_commit_sha")
                listed = [one for one in self.merge_requests if commit in [one[field] for field in fields]]
                return self._page(listed, request, query)
        return None

    def _write(self, request: Request, parts: list[str], name: str) -> Reply | None:
        body = request.body.get("body") if isinstance(request.body, dict) else None
        bad = request.method != "DELETE" and (not isinstance(body, str) or not body.strip() or len(body) > _MOST_CHARACTERS)
        match request.method, parts:
            case "POST", ["merge_requests", number, "notes"] if number == str(NUMBER):
                return _bad_note() if bad else Reply(status=201, document=self.notes[self.add(str(body), name)])
            case "PUT", ["merge_requests", number, "notes", note_id] if number == str(NUMBER) and int(note_id) in self.notes:
                if self.notes[int(note_id)]["author"]["username"] != name:
                    return Reply(status=403, document={"message": "403 Forbidden"})
                self.notes[int(note_id)] |= {} if bad else {"body": body}
                return _bad_note() if bad else Reply(status=200, document=self.notes[int(note_id)])
            case "DELETE", ["merge_requests", number, "notes", note_id] if self.notes.pop(int(note_id), None):
                return Reply(status=204)
        return None

    def _page(self, items: list[Any], request: Request, query: Mapping[str, str]) -> Reply:
        size, page = min(int(query.get("per_page", 20)), self.per_page), int(query.get("page", 1))
        last = max(1, -(-len(items) // size))
        base = f"{self.url.removesuffix(PREFIX)}{request.path.partition('?')[0]}"

        def link(number: int, rel: str) -> str:
            return f'<{base}?{urllib.parse.urlencode({**query, "page": number})}>; rel="{rel}"'

        links = [link(page - 1, "prev")] if page > 1 else []
        links += [link(page + 1, "next")] if page < last else []
        links += [link(1, "first"), link(last, "last")]
        headers = {"link": ", ".join(links), "x-total": str(len(items)), "x-per-page": str(size)}
        return Reply(status=200, document=items[(page - 1) * size : page * size], headers=headers)


def user(name: str) -> dict[str, Any]:
    """The author of a note."""
    return {
        "id": sum(name.encode()),
        "username": name,
        "name": name.title(),
        "state": "active",
        "locked": False,
        "avatar_url": None,
        "web_url": f"https://gitlab.example.org/{urllib.parse.quote(name)}",
    }


def note(number: int, body: str, name: str, *, system: bool = False) -> dict[str, Any]:
    """A note of a merge request."""
    return {
        "id": number,
        "type": None,
        "body": body,
        "author": user(name),
        "created_at": "2026-01-02T12:00:00.000Z",
        "updated_at": "2026-01-02T12:00:00.000Z",
        "system": system,
        "noteable_id": 901,
        "noteable_type": "MergeRequest",
        "project_id": int(PROJECT_ID),
        "resolvable": False,
        "confidential": False,
        "internal": False,
        "imported": False,
        "noteable_iid": NUMBER,
        "commands_changes": {},
    }


def merge_request(number: int, head: str, *, merged_as: str | None = None, squashed_as: str | None = None) -> dict[str, Any]:
    """What is read of a merge request."""
    merged = merged_as is not None or squashed_as is not None
    return {
        "id": 894 + number,
        "iid": number,
        "project_id": int(PROJECT_ID),
        "title": "quotas",
        "state": "merged" if merged else "opened",
        "source_branch": "change",
        "target_branch": "main",
        "sha": head,
        "merge_commit_sha": merged_as,
        "squash_commit_sha": squashed_as,
        "web_url": f"https://gitlab.example.org/{PROJECT}/-/merge_requests/{number}",
    }


def _bad_note() -> Reply:
    return Reply(status=400, document={"message": {"note": ["can't be blank"]}})


@contextlib.contextmanager
def gitlab_server(tls: ssl.SSLContext | None = None) -> Iterator[GitLabServer]:
    """The server, on a free port, for as long as the block lasts."""
    state = GitLabServer()
    with serving(state, prefix=PREFIX, tls=tls):
        yield state
