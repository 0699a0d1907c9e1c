"""How Java writes things down: properties files and JAAS configurations. Pure text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from reconciler.sandbox.login import Login

_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"


def properties_text(settings: Mapping[str, str]) -> str:
    """A Java properties file, ASCII only, which every reader of the format understands alike."""
    return "".join(f"{_escaped(key, key=True)}={_escaped(value, key=False)}\n" for key, value in settings.items())


def plain_login_module(login: Login) -> str:
    """The JAAS line of a client that logs in as ``login``."""
    return f"{_PLAIN_MODULE} required username={_quoted(login.name)} password={_quoted(login.password)};"


def plain_server_module(logins: Sequence[Login]) -> str:
    """The JAAS line of a listener that knows ``logins``."""
    users = " ".join(f"{_quoted('user_' + login.name)}={_quoted(login.password)}" for login in logins)
    return f"{_PLAIN_MODULE} required {users};"


def _quoted(text: str) -> str:
    """A string of a JAAS configuration, as Java's StreamTokenizer reads it: backslash escapes, octal for control characters."""
    return '"' + "".join(f"\\{ord(c):03o}" if ord(c) < 32 else f"\\{c}" if c in '"\\' else c for c in text) + '"'


def _escaped(text: str, *, key: bool) -> str:
    out: list[str] = []
    for position, char in enumerate(text):
        if char == "\\" or (key and char in "=: #!") or (position == 0 and char in " #!"):
            out.append("\\" + char)
        elif " " <= char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be")
            out.extend(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
    return "".join(out)
