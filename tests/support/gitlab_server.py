"""A server on loopback that behaves as GitLab's REST API does for merge requests and their notes.

Documents have the fields of GitLab's public API documentation ("Notes API", "Merge requests API", "Commits API", "Users API"),
errors its three forms: a text, lists by field, and ``error`` with ``error_description``. Faults are scripted, and used up one
request at a time.
"""

from __future__ import annotations

import contextlib
import ssl
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.github_server import ForgeServer, Reply, Request, serving

PROJECT = "acme/platform/quotas"
PROJECT_ID = "31"
NUMBER = 7
HEAD = "a1" * 20
TOKEN = "glpat-0123456789abcdefSECRET"
JOB_TOKEN = "job-token-of-this-run"
BOT = "project_31_bot_7c5e"
PREFIX = "/api/v4"
_MOST_CHARACTERS = 1_000_000


class GitLabServer(ForgeServer):
    """``writes``: the token has the scope api."""

    prefix = PREFIX
    per_page_by_default = 20

    def __init__(self) -> None:
        super().__init__(TOKEN, BOT)
        self.pulls = [merge_request(NUMBER, HEAD)]
        self.approvers: list[str] = []
        self.statuses: dict[tuple[str, str], dict[str, Any]] = {}
        self.artifacts: dict[tuple[str, str], bytes] = {}
        """The files that the newest jobs of main left, by the name of the job."""
        self.checking = True
        """Whether the token has the role that sets statuses."""

    def status(self, name: str, commit: str = HEAD) -> str | None:
        """The state that a commit has by this name."""
        found = self.statuses.get((commit, name))
        return None if found is None else str(found["state"])

    def comment(self, number: int, body: str, login: str | None) -> dict[str, Any]:
        """A note of a merge request."""
        return {
            "id": number,
            "type": None,
            "body": body,
            "author": user(login or "ghost"),
            "system": False,
            "noteable_iid": NUMBER,
        }

    def answer(self, request: Request) -> Reply:
        """What GitLab answers to a request."""
        name = self.logins.get(request.headers.get("private-token", ""))
        url = urllib.parse.urlsplit(request.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        kept = url.path.removeprefix(f"{PREFIX}/projects/{PROJECT_ID}/jobs/artifacts/main/raw/")
        if request.headers.get("job-token") == JOB_TOKEN and (query.get("job", ""), kept) in self.artifacts:
            return Reply(status=200, document=self.artifacts[query["job"], kept])
        if name is None:
            return Reply(status=401, document={"message": "401 Unauthorized"})
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

    def _read(  # noqa: PLR0911 - one case a request
        self, request: Request, parts: list[str], query: Mapping[str, str]
    ) -> Reply | None:
        match parts:
            case ["merge_requests", number] if number == str(NUMBER):
                return Reply(status=200, document=self.pulls[0])
            case ["merge_requests", number, "diffs"] if number == str(NUMBER):
                return self.page(self.files, request, query)
            case ["merge_requests", number, "discussions"] if number == str(NUMBER):
                notes = [*self.comments.values(), *self.line_comments.values()]
                threads = [{"id": f"{note['id']:040x}", "individual_note": True, "notes": [note]} for note in notes]
                return self.page(threads, request, query)
            case ["merge_requests", number, "approvals"] if number == str(NUMBER):
                approved = [{"user": user(name)} for name in self.approvers]
                return Reply(status=200, document={"iid": NUMBER, "approved": bool(approved), "approved_by": approved})
            case ["merge_requests", number, "notes"] if number == str(NUMBER):
                return self.page(list(self.comments.values()), request, query)
            case []:
                return Reply(status=200, document={"id": int(PROJECT_ID), "default_branch": "main"})
            case ["merge_requests"] if "source_branch" in query:
                return self.page([one for one in self.pulls if one["source_branch"] == query["source_branch"]], request, query)
            case ["repository", "commits", commit, "merge_requests"]:
                fields = ("sha", "merge_commit_sha", "squash_commit_sha")
                listed = [one for one in self.pulls if commit in [one[field] for field in fields]]
                return self.page(listed, request, query)
        return None

    def _write(self, request: Request, parts: list[str], name: str) -> Reply | None:  # noqa: PLR0911 - one case a request
        body = request.body.get("body") if isinstance(request.body, dict) else None
        bad = request.method != "DELETE" and (not isinstance(body, str) or not body.strip() or len(body) > _MOST_CHARACTERS)
        match request.method, parts:
            case "POST", ["merge_requests", number, "discussions"] if number == str(NUMBER):
                return self._thread(request.body, name)
            case "PUT", ["merge_requests", number, "notes", note_id] if int(note_id) in self.line_comments:
                self.line_comments[int(note_id)]["body"] = body
                return Reply(status=200, document=self.line_comments[int(note_id)])
            case "DELETE", ["merge_requests", number, "notes", note_id] if self.line_comments.pop(int(note_id), None):
                return Reply(status=204)
            case "POST", ["statuses", commit]:
                if not self.checking:
                    return Reply(status=403, document={"message": "403 Forbidden"})
                self.statuses[commit, request.body["name"]] = request.body
                shown = {"id": 1, "sha": commit, "status": request.body["state"], "name": request.body["name"]}
                return Reply(status=201, document=shown)
            case "POST", ["merge_requests", number, "notes"] if number == str(NUMBER):
                return _bad_note() if bad else Reply(status=201, document=self.comments[self.add(str(body), name)])
            case "PUT", ["merge_requests", number, "notes", note_id] if number == str(NUMBER) and int(note_id) in self.comments:
                if self.comments[int(note_id)]["author"]["username"] != name:
                    return Reply(status=403, document={"message": "403 Forbidden"})
                self.comments[int(note_id)] |= {} if bad else {"body": body}
                return _bad_note() if bad else Reply(status=200, document=self.comments[int(note_id)])
            case "DELETE", ["merge_requests", number, "notes", note_id] if self.comments.pop(int(note_id), None):
                return Reply(status=204)
        return self._propose(request, parts)

    def _propose(self, request: Request, parts: list[str]) -> Reply | None:
        match request.method, parts:
            case "POST", ["merge_requests"]:
                made = {**merge_request(len(self.pulls) + 100, HEAD), **request.body}
                self.pulls.insert(0, made)
                return Reply(status=201, document=made)
            case "PUT", ["merge_requests", number]:
                (merge,) = [one for one in self.pulls if one["iid"] == int(number)]
                merge |= request.body
                merge["state"] = {"close": "closed"}.get(merge.pop("state_event", ""), merge["state"])
                return Reply(status=200, document=merge)
        return None

    def _thread(self, body: dict[str, Any], name: str) -> Reply:
        """A thread on a line; an unchanged line needs its old number, as GitLab finds it by both."""
        position = body["position"]
        shown = self.shown_lines(position["new_path"])
        if position["new_line"] not in shown or not {"base_sha", "start_sha", "head_sha", "old_path"} <= set(position):
            return Reply(status=400, document={"message": '400 Bad request - Note {:line_code=>["can\'t be blank"]}'})
        note = self.line_comment(body["body"], name, {"type": "DiffNote", "position": position})
        return Reply(status=201, document={"id": f"{note['id']:040x}", "individual_note": False, "notes": [note]})


def user(name: str) -> dict[str, Any]:
    """The author of a note."""
    return {"id": sum(name.encode()), "username": name, "name": name.title(), "state": "active"}


def merge_request(number: int, head: str, *, merged_as: str | None = None, squashed_as: str | None = None) -> dict[str, Any]:
    """What is read of a merge request."""
    merged = merged_as is not None or squashed_as is not None
    return {
        "id": 894 + number,
        "iid": number,
        "project_id": int(PROJECT_ID),
        "source_project_id": int(PROJECT_ID),
        "target_project_id": int(PROJECT_ID),
        "title": "quotas",
        "state": "merged" if merged else "opened",
        "source_branch": "change",
        "target_branch": "main",
        "sha": head,
        "merge_commit_sha": merged_as,
        "squash_commit_sha": squashed_as,
        "diff_refs": {"base_sha": "0" * 40, "start_sha": "0" * 40, "head_sha": head},
        "web_url": f"https://gitlab.example.org/{PROJECT}/-/merge_requests/{number}",
        "author": user("author"),
        "merge_user": user("merger") if merged else None,
        "merged_at": "2026-01-02T13:00:00.000Z" if merged else None,
    }


def _bad_note() -> Reply:
    return Reply(status=400, document={"message": {"note": ["can't be blank"]}})


@contextlib.contextmanager
def gitlab_server(tls: ssl.SSLContext | None = None) -> Iterator[GitLabServer]:
    """The server, on a free port, for as long as the block lasts."""
    state = GitLabServer()
    with serving(state, tls=tls):
        yield state
