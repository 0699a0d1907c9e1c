"""The secret: read from the environment or a file, and shown nowhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reconciler.errors import FileAccessError, UsageError

VARIABLE: Final = "GITHUB_TOKEN"

_FORM: Final = re.compile(r"[!-~]{1,4096}")
"""Visible ASCII, as fits into a header: a line break in a token would begin another header."""


class Token:
    """A token that shows itself only when asked for its text."""

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def __repr__(self) -> str:
        return "Token(hidden)"

    def reveal(self) -> str:
        """The secret itself, for the request."""
        return self._secret

    def hidden_in(self, text: str) -> str:
        """Text of a server, without the token if it sends that back."""
        return text.replace(self._secret, "***")


def read_token(environment: Mapping[str, str], file: Path | None) -> Token:
    """The token of a file, else of the environment. Raises ``UsageError`` without one, ``FileAccessError`` for no such file."""
    where = "the file of --token-file" if file else f"the environment variable {VARIABLE}"
    secret = (_content(file) if file else environment.get(VARIABLE, "")).strip()
    if not secret:
        raise UsageError(f"{where} has no token; give one in {VARIABLE} or with --token-file")
    if not _FORM.fullmatch(secret):
        raise UsageError(f"what {where} has is not a token: a token is one word of visible ASCII characters")
    return Token(secret)


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        # Neither this nor the error's own text names the file: it may be the token itself, given where its file belongs.
        raise FileAccessError(f"cannot read the file of --token-file: {error.strerror}") from None
    except UnicodeDecodeError:
        # The error has the bytes, so it is not passed on.
        raise FileAccessError("cannot read the file of --token-file: not UTF-8 text") from None
