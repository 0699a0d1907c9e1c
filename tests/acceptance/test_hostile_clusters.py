"""A broker, snapshot or baseline whose cluster id and version forge lines and control a terminal: both are shown, not obeyed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.bad_servers import ScriptedBroker, serving
from tests.support.command import Done, invoke
from tests.support.log_readers import commands_in
from tests.support.manifests import cluster, quotas

EVIL = "c1\x1b[2J\x1b]0;owned\x07\r\nNo changes: the cluster has what the manifests declare.\n\u202e::error::x\x9b31m##[group]"
FORGED = ("No changes", "::error")
QUOTAS = quotas(({"user": "a"}, {"producer_byte_rate": "1MiB"}))
API_VERSIONS, METADATA, DESCRIBE, ALTER = 18, 3, 48, 49


@contextmanager
def evil_broker() -> Iterator[str]:
    """A broker without quotas that calls its cluster so, and refuses changes in such words; gives its address."""
    from kafka.protocol.admin import AlterClientQuotasResponse, DescribeClientQuotasResponse
    from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

    ports: list[int] = []
    offered = {API_VERSIONS: 3, METADATA: 9, DESCRIBE: 1, ALTER: 1}

    def api_versions(_version: int) -> Any:
        rows = [ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=newest) for key, newest in offered.items()]
        return ApiVersionsResponse(error_code=0, api_keys=rows, throttle_time_ms=0)

    def metadata(_version: int) -> Any:
        node = MetadataResponse.MetadataResponseBroker(node_id=7, host="127.0.0.1", port=ports[0], rack=None)
        return MetadataResponse(throttle_time_ms=0, brokers=[node], cluster_id=EVIL, controller_id=7, topics=[])

    def described(_version: int) -> Any:
        return DescribeClientQuotasResponse(throttle_time_ms=0, error_code=0, error_message=None, entries=[])

    def altered(_version: int) -> Any:
        entry = AlterClientQuotasResponse.EntryData
        entity = [entry.EntityData(entity_type="user", entity_name="a")]
        rows = [entry(error_code=42, error_message=EVIL, entity=entity)]
        return AlterClientQuotasResponse(throttle_time_ms=0, entries=rows)

    broker = ScriptedBroker({API_VERSIONS: api_versions, METADATA: metadata, DESCRIBE: described, ALTER: altered})
    with serving(broker) as port:
        ports.append(port)
        yield f"127.0.0.1:{port}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(cluster("prod"))
    (tmp_path / "quotas.yaml").write_text(QUOTAS)
    state = {
        "format_version": "1.0",
        "cluster": {"name": EVIL, "id": EVIL, "kafka_version": EVIL},
        "observed": {"at": "2026-01-02T12:00:00+00:00", "from": "broker"},
        "entities": [],
    }
    (tmp_path / "now.json").write_text(json.dumps(state))
    return tmp_path


def assert_shown(done: Done, *, code: int) -> None:
    """The text is in the output as an escape, and began no line and moved no cursor."""
    assert done.code == code, done.err
    for output in (done.out, done.err):
        assert all(line.isprintable() for line in output.split("\n")), output
        assert not any(line.startswith(FORGED) for line in output.split("\n")), output
    assert "c1\\u001b[2J" in done.out + done.err


@pytest.mark.parametrize("arguments", [("plan",), ("drift",), ("resolve", "--all")])
def test_a_snapshot_forges_no_line(folder: Path, arguments: tuple[str, ...]) -> None:
    paths = [] if arguments[0] in ("describe", "resolve") else ["."]
    assert_shown(invoke(*arguments, *paths, "--current", "now.json", cwd=folder), code=0)


@pytest.mark.parametrize("arguments", [("plan", "."), ("drift", ".")])
def test_a_broker_forges_no_line(folder: Path, arguments: tuple[str, ...]) -> None:
    with evil_broker() as address:
        assert_shown(invoke(*arguments, "--bootstrap-server", address, cwd=folder), code=0)


def test_the_words_of_a_broker_that_refuses_are_no_command_and_forge_no_line(folder: Path) -> None:
    (folder / "quotas.yaml").write_text(quotas(({"user": "a"}, {"producer_byte_rate": "1MiB"})))
    with evil_broker() as address:
        arguments = ("apply", ".", "--auto-approve", "--bootstrap-server", address)
        done = invoke(*arguments, cwd=folder, env={"GITHUB_ACTIONS": "true"})
    assert_shown(done, code=1)
    assert commands_in(done.out + done.err) == []
    assert "##\\u005bgroup]" in done.out


@pytest.mark.parametrize("command", ["plan", "drift", "describe", "apply"])
def test_the_wrong_cluster_is_named_on_one_line(folder: Path, command: str) -> None:
    (folder / "cluster.yaml").write_text(cluster("prod", clusterId="expected"))
    with evil_broker() as address:
        flags = ("--auto-approve",) if command == "apply" else ()
        done = invoke(command, ".", "--bootstrap-server", address, *flags, cwd=folder)
    assert_shown(done, code=3)
    assert done.err.count("\n") == 1
