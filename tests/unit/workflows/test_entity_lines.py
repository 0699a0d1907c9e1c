"""Entities as JSON lines: what is read, and what is said about a line that cannot be."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from reconciler.errors import FileAccessError
from reconciler.model.effect import OTHER, KnownAddress, KnownClient
from reconciler.model.entity import DEFAULT, Entity
from reconciler.workflows.plan_effects import parse_clients, read_clients


def parsed(text: str | bytes) -> list[tuple[Entity, object]]:
    return list(parse_clients(io.BytesIO(text if isinstance(text, bytes) else text.encode()), "list.jsonl"))


@pytest.mark.parametrize(
    ("line", "names", "client"),
    [
        ('{"user": "a", "client-id": "c"}', {"user": "a", "client-id": "c"}, KnownClient(user="a", client_id="c")),
        ('{"client-id": "c", "user": "a"}', {"user": "a", "client-id": "c"}, KnownClient(user="a", client_id="c")),
        ('{"user": "a"}', {"user": "a"}, KnownClient(user="a", client_id="")),
        ('{"user": "a", "client-id": ""}', {"user": "a", "client-id": ""}, KnownClient(user="a", client_id="")),
        ('{"user": "a", "client-id": null}', {"user": "a", "client-id": DEFAULT}, KnownClient(user="a", client_id=OTHER)),
        ('{"client-id": "c"}', {"client-id": "c"}, KnownClient(user=OTHER, client_id="c")),
        ('{"user": "<default>"}', {"user": "<default>"}, KnownClient(user="<default>", client_id="")),
        ('{"user": " a\\u2028"}', {"user": " a\u2028"}, KnownClient(user=" a\u2028", client_id="")),
        ('{"ip": "10.0.0.7"}', {"ip": "10.0.0.7"}, KnownAddress(ip="10.0.0.7")),
        ('{"ip": null}', {"ip": DEFAULT}, KnownAddress(ip=OTHER)),
    ],
)
def test_a_line_is_an_entity_and_whom_it_stands_for(line: str, names: dict[str, str], client: object) -> None:
    assert parsed(line) == [(Entity.of(names), client)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "this is not JSON: .* at column"),
        ('{"user": "a"} x', "this is not JSON"),
        ("[" * 100_000, "nested too deep"),
        ('["user", "a"]', "not an object"),
        ("null", "not an object"),
        ('"alice"', "not an object"),
        ("{}", "the object has no entity type"),
        ('{"user": "a", "user": "b"}', "'user' is there twice"),
        ('{"user": 7}', "the name of the 'user' is neither a string nor null"),
        ('{"user": ["a"]}', "neither a string nor null"),
        ('{"user": {"default": true}}', "neither a string nor null"),
        ('{"user": ""}', "the name of the 'user' is empty"),
        ('{"ip": ""}', "the name of the 'ip' is empty"),
        ('{"clientid": "a"}', "'clientid' is not an entity type. The types are user, client-id, ip. Did you mean 'client-id'"),
        ('{"ip": "10.0.0.7", "user": "a"}', "an ip cannot be combined"),
        ('{"ip": "::1::"}', "'::1::' is neither an address nor a host name"),
        ('{"user": "\\ud800"}', "half a surrogate pair"),
        ('{"user": "' + "x" * 32_768 + '"}', "has 32768 bytes"),
        ('{"user": 1' + "0" * 5_000 + "}", "neither a string|not JSON|digits"),
    ],
)
def test_a_bad_line_is_named_with_its_reason(line: str, reason: str) -> None:
    with pytest.raises(FileAccessError, match=rf"^list\.jsonl:3: .*({reason})"):
        parsed('{"user": "a"}\n\n' + line + "\n")


def test_bytes_that_are_no_text_and_files_that_are_not_there_are_told(tmp_path: Path) -> None:
    with pytest.raises(FileAccessError, match=r"list\.jsonl is not UTF-8 text"):
        parsed(b'{"user": "\xff"}')
    with pytest.raises(FileAccessError, match="cannot be read: No such file"):
        read_clients(tmp_path / "none")
    with pytest.raises(FileAccessError, match="cannot be read: Is a directory"):
        read_clients(tmp_path)
