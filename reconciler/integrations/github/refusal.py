"""What GitHub says when it refuses a request, and what to do about it. Pure.

The forms of errors are those of ``basic-error`` and ``validation-error`` in GitHub's OpenAPI description.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from reconciler.integrations.github.transport import Answer
from reconciler.model import escaped

_SHOWN: Final = 300
_NEEDED: Final = "it needs to read the pull request and write its comments (in a workflow: permissions: pull-requests: write)"
_ADVICE: Final = {
    401: "the token is refused; is it expired, or of another server?",
    403: f"the token may not do this; {_NEEDED}",
    404: f"there is no such repository, pull request or comment, or the token may not see it; {_NEEDED}",
    410: "this is gone, or the repository has its issues switched off",
    422: "GitHub does not take this",
}


def refusal(answer: Answer) -> str:
    """One sentence: the advice, the status, and GitHub's own words, escaped and shortened."""
    said = "; ".join(_said(answer))
    needed = answer.headers.get("x-accepted-github-permissions", "")
    wanted = f"; the permission that is asked for: {needed}" if needed and answer.status == 403 else ""
    advice = _ADVICE.get(answer.status, "GitHub's API does not answer as expected")
    words = f" {said}" if said else ""
    return f"{advice} (HTTP status {answer.status}{escaped(f':{words}' if words else '')}{escaped(wanted)})"


def _said(answer: Answer) -> Iterator[str]:
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        return
    if not isinstance(document, dict):
        return
    yield from _text(document.get("message"))
    errors = document.get("errors")
    for one in errors[:3] if isinstance(errors, list) else [errors]:
        yield from _text(one)
        if isinstance(one, dict):
            parts = [part for key in ("field", "code", "message") for part in _text(one.get(key))]
            yield from _text(" ".join(parts))


def _text(value: object) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
