"""One request to a webhook. The caller waits a few seconds at most, and nothing shows the address.

The address of a webhook is a secret: any user who has it can post. A request is sent once, and no redirection is followed.
"""

from __future__ import annotations

import logging
import threading
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Final

import reconciler
from reconciler.errors import UsageError
from reconciler.integrations.transport import ApiAddress, Http, NoAnswerError, api_address
from reconciler.logs import log_event

LIMIT_SECONDS: Final = 10.0
"""How long a caller waits at most, whatever the server does."""
_EXAMPLE: Final = "https://hooks.example.org/..."
_THREAD: Final = "kafka-quotas-webhook"
_log: Final = logging.getLogger(__name__)


class _WithoutAddress(logging.Filter):
    """The library logs the path of each request, which is the secret here."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.threadName != _THREAD


_WITHOUT_ADDRESS: Final = _WithoutAddress()


def post_to_webhook(
    address: str, body: bytes, *, ca_file: Path | None = None, limit_seconds: float = LIMIT_SECONDS
) -> str | None:
    """Send a JSON document; ``None`` when it was taken, else why not, without the address.

    Raises ``UsageError``, ``FileAccessError`` and ``MissingDependencyError`` for what could never be sent.
    """
    server, target = _parsed(address)
    http = Http(server, purpose="sending notifications", extra="notify", ca_file=ca_file, seconds=limit_seconds / 2)
    results: list[str | None] = []
    for name in ("urllib3.connectionpool", "urllib3.util.retry"):
        logging.getLogger(name).addFilter(_WITHOUT_ADDRESS)

    def send() -> None:
        try:
            results.append(_answer_to(http, target, body))
        finally:
            http.close()

    elapsed = _run_within(send, limit_seconds)
    problem = results[0] if results else f"the server did not answer within {limit_seconds:g} s"
    log_event(
        _log,
        "webhook called",
        host=server.host,
        bytes=len(body),
        milliseconds=elapsed,
        reason=problem,
    )
    return problem


def _parsed(address: str) -> tuple[ApiAddress, str]:
    """The server, and the whole address. The query is part of the secret of some services."""
    try:
        parts = urllib.parse.urlsplit(address)
        plain = address if parts.username else parts._replace(query="", fragment="").geturl()
        return api_address(plain, api="the webhook", example=_EXAMPLE), address
    except (UsageError, ValueError):
        # The message of the other error would show the address.
        raise UsageError("the address of the webhook is not a URL that begins with https://") from None


def _answer_to(http: Http, target: str, body: bytes) -> str | None:
    headers = {
        "content-type": "application/json; charset=utf-8",
        "user-agent": f"kafka-quotas/{reconciler.__version__}",
    }
    try:
        answer = http.send("POST", target, headers=headers, body=body)
    except NoAnswerError as error:
        return str(error).replace(target, "***")
    if 200 <= answer.status < 300:
        return None
    if 300 <= answer.status < 400:
        return f"the server redirects to another address (HTTP status {answer.status}), which is not followed"
    return f"the server answers with HTTP status {answer.status}"


def _run_within(action: Callable[[], None], seconds: float) -> float:
    """Run in a thread of its own, which is left behind when it takes longer. The milliseconds that were waited."""
    begun = time.monotonic()
    thread = threading.Thread(target=action, name=_THREAD, daemon=True)
    thread.start()
    thread.join(seconds)
    return round((time.monotonic() - begun) * 1000, 1)
