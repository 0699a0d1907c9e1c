"""Notifications: who gets which, in which form, and what a webhook that fails does to its caller."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from reconciler.features.notifications.notification import NOTIFICATION, Notification, NotificationEvent, render_chat_message
from reconciler.features.notifications.sending import post_to_webhook, send_notification
from reconciler.model.cluster import Webhook
from reconciler.model.state import ClusterIdentity
from tests.builders import NOON, user
from tests.support.hostile_names import HOSTILE
from tests.support.records import recorded
from tests.support.webhook_server import SECRET, WebhookServer, webhook_server

DOCUMENT = json.loads((Path(__file__).parents[3] / "schemas/notification.v1.schema.json").read_text("utf-8"))
SCHEMA = Draft202012Validator(DOCUMENT)
WEBHOOK = Webhook(name="ops", variable="HOOK")


@pytest.fixture
def server() -> Iterator[WebhookServer]:
    with webhook_server() as server:
        yield server


def notification(event: NotificationEvent = NotificationEvent.DRIFT, **fields: object) -> Notification:
    made = Notification(
        event=event,
        command="drift",
        at=NOON,
        cluster=ClusterIdentity(name="prod", id="c1", kafka_version="4.3"),
        summary="The cluster differs from its manifests in 1 entity (1 changed).",
        counts={"changed": 1},
        entities=(user("alice"), user()),
    )
    return dataclasses.replace(made, **fields)  # type: ignore[arg-type]  # a test names fields as it likes


def send(server: WebhookServer, webhook: Webhook = WEBHOOK, **fields: object) -> tuple[str, ...]:
    problems = send_notification([webhook], notification(**fields), environment={"HOOK": server.url})  # type: ignore[arg-type]  # a test names fields as it likes
    assert SECRET not in "".join(problems)
    return problems


def test_a_json_webhook_gets_the_documented_document(server):
    assert send(server) == ()

    (body,) = server.bodies
    SCHEMA.validate(body)
    assert body == NOTIFICATION.write(notification())
    assert body["entities"] == [{"user": "alice"}, {"user": None}]
    ((path, headers),) = server.requests
    assert path == f"/services/{SECRET}?key={SECRET}"
    assert headers["content-type"] == "application/json; charset=utf-8"


def test_a_chat_gets_text_and_blocks_in_which_names_are_not_markup(server):
    names = ["<!channel>", "<https://evil.example|click>", "&lt;", "*bold*", "@here", *(name for name in HOSTILE if name)]
    slack = dataclasses.replace(WEBHOOK, format="slack")

    send(server, slack, summary="drift of <!channel> & <@U123>", entities=tuple(map(user, names)), omitted=3)

    (body,) = server.bodies
    assert set(body) == {"text", "blocks"}
    assert "<" not in body["text"]
    assert "&lt;!channel&gt; &amp; &lt;@U123&gt;" in body["text"]
    texts = [block["text"] for block in body["blocks"] if "text" in block] + body["blocks"][-1]["elements"]
    assert {text["type"] for text in texts} == {"plain_text"}
    assert [block["type"] for block in body["blocks"]] == ["header", "section", "context"]
    assert "and 3 more entities" in texts[1]["text"] or texts[1]["text"].endswith("…")
    assert not any(ord(character) < 32 and character != "\n" for text in texts for character in text["text"])


def test_long_names_keep_within_the_limits_of_slack():
    message = render_chat_message(notification(entities=tuple(user("x" * 255 + str(n)) for n in range(20)), summary="y" * 5000))
    header, section, _ = json.loads(json.dumps(message))["blocks"]
    assert len(header["text"]["text"]) <= 150
    assert len(section["text"]["text"]) <= 3000


def test_a_webhook_gets_only_the_events_that_it_wants(server):
    only_failures = dataclasses.replace(WEBHOOK, events=frozenset({NotificationEvent.FAILED}))
    assert send(server, only_failures) == ()
    assert server.bodies == []
    send(server, only_failures, event=NotificationEvent.FAILED)
    assert len(server.bodies) == 1


def test_the_address_may_be_in_a_file(server, tmp_path):
    (tmp_path / "secret").write_text(f"{server.url}\n", encoding="utf-8")
    webhook = dataclasses.replace(WEBHOOK, variable=None, file=str(tmp_path / "secret"))

    assert send_notification([webhook], notification(), environment={}) == ()
    assert len(server.bodies) == 1
    absent = dataclasses.replace(webhook, file=str(tmp_path / "absent"))
    assert "cannot read the file with its address" in send_notification([absent], notification(), environment={})[0]


@pytest.mark.parametrize(("status", "words"), [(500, "HTTP status 500"), (429, "HTTP status 429")])
def test_a_refusal_is_one_problem_and_is_not_sent_again(server, status, words):
    server.status = status

    (problem,) = send(server)

    assert problem == f"webhook ops was not notified of drift: the server answers with {words}"
    assert len(server.requests) == 1


def test_a_redirection_is_not_followed(server):
    with webhook_server() as other:
        server.status, server.location = 307, other.url
        (problem,) = send(server)
        assert other.requests == []
    assert "redirects to another address (HTTP status 307), which is not followed" in problem


def test_a_webhook_that_hangs_is_left_behind_after_the_limit(server):
    server.hangs = True

    problem = post_to_webhook(server.url, b"{}", limit_seconds=0.2)

    assert problem in ("the server did not answer within 0.2 s", "the server did not answer in time")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("", "the environment variable HOOK with its address is not set"),
        (f"http://hooks.example.org/{SECRET}", "is not a URL that begins with https://"),
        (f"https://[{SECRET}", "is not a URL that begins with https://"),
        (f"https://me:{SECRET}@hooks.example.org/", "is not a URL that begins with https://"),
        (SECRET, "is not a URL that begins with https://"),
        (f"http://127.0.0.1:1/{SECRET}", "webhook ops was not notified of drift: no connection"),
    ],
)
def test_an_address_that_cannot_be_used_is_a_problem_that_does_not_show_it(address, words):
    (problem,) = send_notification([WEBHOOK], notification(), environment={"HOOK": address})
    assert words in problem
    assert SECRET not in problem


def test_the_log_of_a_call_does_not_have_the_address(server):
    with recorded() as records:
        send(server)

    (called,) = records.events("webhook called")
    assert called["host"] == "127.0.0.1"
    assert not records.holds(SECRET)
