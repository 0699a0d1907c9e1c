"""The text of server.properties, read back by an independent reader of the format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import UsageError
from reconciler.features.sandbox.configuration import NodePorts, plain_login_module, properties_text, server_properties
from reconciler.features.sandbox.spec import Login, SandboxSpec

PORTS = tuple(NodePorts(plaintext=n, controller=n + 1, sasl=n + 2) for n in (20010, 20020, 20030))
UNICODE = st.text(st.characters(exclude_categories=["Cs"]))


def properties(spec: SandboxSpec, *, node_id: int = 1) -> dict[str, str]:
    ports = (
        PORTS[: spec.nodes]
        if spec.users
        else tuple(NodePorts(plaintext=p.plaintext, controller=p.controller, sasl=None) for p in PORTS)
    )
    text = server_properties(spec, node_id=node_id, ports=ports[: spec.nodes], data=Path("/data"))
    return dict(javaproperties.loads(text))


@given(st.dictionaries(UNICODE, UNICODE))
def test_any_settings_survive_the_file_format(settings: dict[str, str]) -> None:
    text = properties_text(settings)
    assert text.isascii()
    assert javaproperties.loads(text) == settings


def test_one_node_listens_on_loopback_only() -> None:
    found = properties(SandboxSpec())
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:20010,CONTROLLER://127.0.0.1:20011"
    assert found["advertised.listeners"] == "PLAINTEXT://127.0.0.1:20010"
    assert found["controller.quorum.voters"] == "1@127.0.0.1:20011"
    assert not [key for key in found if "sasl" in key]


def test_users_get_a_listener_with_their_passwords_quoted_as_java_reads_them() -> None:
    found = properties(SandboxSpec(users=(Login(name='al"ice', password="a\\b;c"),)))
    assert "SASL://127.0.0.1:20012" in found["advertised.listeners"]
    assert found["listener.name.sasl.plain.sasl.jaas.config"].endswith(' required "user_al\\"ice"="a\\\\b;c";')


def test_a_login_never_shows_its_password() -> None:
    login = Login(name="alice", password="hunter2")
    assert "hunter2" not in repr(login)
    assert 'password="hunter2"' in plain_login_module(login)


def test_settings_the_sandbox_chooses_itself_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"listeners, node\.id cannot be set"):
        properties(SandboxSpec(properties={"node.id": "7", "listeners": "PLAINTEXT://:9092", "num.io.threads": "2"}))


@pytest.mark.parametrize(
    "wrong",
    [
        {"nodes": 2},
        {"kafka_version": "1.0.0"},
        {"kafka_version": "2.8.2"},
        {"users": (Login(name="", password="x"),)},
        {"users": (Login(name="a", password="x"), Login(name="a", password="y"))},
        {"users": (Login(name="\udc80", password="x"),)},
        {"users": (Login(name="a" * 51, password="x"),)},
    ],
)
def test_a_spec_that_cannot_work_is_a_usage_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        SandboxSpec(**wrong)
