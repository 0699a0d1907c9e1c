"""Send notifications to the webhooks of a cluster. A webhook that fails is a warning, and nothing else.

The address of a webhook is a secret: any user who has it can post. A request is sent once, no redirection is followed, the caller
waits a few seconds at most, and nothing shows the address.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import reconciler
from reconciler.errors import FileAccessError, ReconcilerError, UsageError
from reconciler.features.notifications.notification import (
    NOTIFICATION,
    Notification,
    notification_of_drift,
    notification_of_error,
    notification_of_report,
    render_chat_message,
)
from reconciler.http import ApiAddress, Http, NoAnswerError, api_address
from reconciler.logs import log_event
from reconciler.model import ApplyReport, ClusterIdentity, ClusterSpec, Drift, Webhook, display_name
from reconciler.ports import SystemClock

LIMIT_SECONDS: Final = 10.0
"""How long a caller waits at most, whatever the server does."""
_EXAMPLE: Final = "https://hooks.example.org/..."
_THREAD: Final = "kafka-quotas-webhook"
_log: Final = logging.getLogger(__name__)
_MOST_ADDRESS: Final = 8192


def notify(spec: ClusterSpec, result: ApplyReport | Drift | Exception, *, command: str) -> tuple[str, ...]:
    """Notify of what a write did, of differences or of an error. The problems, as of ``send_notification``."""
    at = SystemClock().now()
    match result:
        case ApplyReport():
            notification = notification_of_report(result, command=command, at=at)
        case Drift():
            notification = notification_of_drift(result, at=at)
        case _:
            cluster = ClusterIdentity(name=spec.name, id=spec.cluster_id)
            notification = notification_of_error(result, command=command, cluster=cluster, at=at)
    return () if notification is None else send_notification(spec.notifications, notification, environment=os.environ)


def send_notification(
    webhooks: Sequence[Webhook], notification: Notification, *, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Send it to each webhook that wants the event. The problems, one sentence each, without any address."""
    problems = []
    for webhook in webhooks:
        if webhook.events and notification.event not in webhook.events:
            continue
        try:
            problem = post_to_webhook(
                _address(webhook, environment),
                _body(webhook, notification),
                ca_file=Path(webhook.ca_file) if webhook.ca_file else None,
            )
        except ReconcilerError as error:
            problem = str(error)
        if problem is not None:
            problems.append(f"webhook {display_name(webhook.name)} was not notified of {notification.event.value}: {problem}")
    return tuple(problems)


def _body(webhook: Webhook, notification: Notification) -> bytes:
    document = render_chat_message(notification) if webhook.format == "slack" else NOTIFICATION.write(notification)
    return json.dumps(document, ensure_ascii=True, allow_nan=False).encode()


def _address(webhook: Webhook, environment: Mapping[str, str]) -> str:
    if webhook.variable is not None:
        address = environment.get(webhook.variable, "").strip()
        if not address:
            raise UsageError(f"the environment variable {webhook.variable} with its address is not set")
        return address
    try:
        with Path(webhook.file or "").open(encoding="utf-8") as file:
            address = file.read(_MOST_ADDRESS).strip()
    except OSError as error:
        raise FileAccessError(f"cannot read the file with its address: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileAccessError("the file with its address is not UTF-8 text") from None
    if not address:
        raise UsageError("the file with its address is empty")
    return address


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
