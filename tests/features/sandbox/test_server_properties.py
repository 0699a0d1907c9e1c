"""The text of server.properties, read back by an independent reader of the format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import UsageError
from reconciler.features.sandbox.configuration import assign_ports, broker_settings, client_properties_text, properties_text
from reconciler.features.sandbox.spec import Login, SandboxSpec

UNICODE = st.text(st.characters(exclude_categories=["Cs"]))


def settings_of(spec: SandboxSpec) -> dict[str, str]:
    """Those of the first node, whose ports begin with 20010."""
    ports = assign_ports(spec, lambda count: range(20010, 20010 + count))
    return broker_settings(spec, node_id=1, ports=ports, data=Path("/data"))


@given(st.dictionaries(UNICODE, UNICODE))
def test_any_settings_survive_the_file_format(settings: dict[str, str]) -> None:
    text = properties_text(settings)
    assert text.isascii()
    assert javaproperties.loads(text) == settings


def test_one_node_listens_on_loopback_only() -> None:
    found = settings_of(SandboxSpec())
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:20010,CONTROLLER://127.0.0.1:20011"
    assert found["advertised.listeners"] == "PLAINTEXT://127.0.0.1:20010"
    assert found["controller.quorum.voters"] == "1@127.0.0.1:20011"
    assert not [key for key in found if "sasl" in key]


def test_users_get_a_listener_with_their_passwords_quoted_as_java_reads_them() -> None:
    found = settings_of(SandboxSpec(users=(Login(name='al"ice', password="a\\b;c"),)))
    assert "SASL://127.0.0.1:20011" in found["advertised.listeners"]
    assert found["listener.name.sasl.plain.sasl.jaas.config"].endswith(' required "user_al\\"ice"="a\\\\b;c";')


def test_a_login_never_shows_its_password() -> None:
    login = Login(name="alice", password="hunter2")
    assert "hunter2" not in repr(login)
    assert 'password\\="hunter2";' in client_properties_text(login)


def test_settings_the_sandbox_chooses_itself_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"listeners, node\.id cannot be set"):
        settings_of(SandboxSpec(properties={"node.id": "7", "listeners": "PLAINTEXT://:9092", "num.io.threads": "2"}))


@pytest.mark.parametrize(
    "wrong",
    [
        {"kafka_version": "1.0.0"},
        {"kafka_version": "2.8.2"},
        {"users": (Login(name="", password="x"),)},
        {"users": (Login(name="a", password="x"), Login(name="a", password="y"))},
        {"users": (Login(name="\udc80", password="x"),)},
    ],
)
def test_a_spec_that_cannot_work_is_a_usage_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        SandboxSpec(**wrong)
