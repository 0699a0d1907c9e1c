"""The expressions of GitHub Actions, as far as this repository's workflows use them.

Source of the rules: GitHub's documentation of expressions: a name that is not there is null, null is an empty text, texts compare
without regard to case, ``&&`` and ``||`` give one of their sides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+(?:\.\d+)?)|(?P<name>[\w-]+)|(?P<sign>&&|\|\||==|!=|[!().,\[\]]))"
)
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
STATUS = re.compile(r"\b(?:always|success|failure|cancelled)\(\)")


class Expressions:
    """Evaluates expressions over contexts (``github``, ``inputs``, ...). ``status``: of the job so far, for ``success()``."""

    def __init__(self, contexts: Mapping[str, Any], *, status: str = "success") -> None:
        self._contexts = contexts
        self._functions: dict[str, Callable[..., Any]] = {
            "always": lambda: True,
            "success": lambda: status == "success",
            "failure": lambda: status == "failure",
            "cancelled": lambda: False,
            "fromJSON": json.loads,
            "toJSON": lambda value: json.dumps(value, indent=2),
            "format": lambda form, *values: re.sub(r"\{(\d+)\}", lambda m: text_of(values[int(m[1])]), form),
        }

    def filled(self, value: Any) -> Any:
        """A value of the YAML with every ``${{ }}`` in it evaluated; one that is nothing else keeps its type."""
        if isinstance(value, dict):
            return {key: self.filled(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.filled(one) for one in value]
        if not isinstance(value, str):
            return value
        if (whole := _EXPRESSION.fullmatch(value.strip())) and value.count("${{") == 1:
            return self.value(whole[1])
        return _EXPRESSION.sub(lambda match: text_of(self.value(match[1])), value)

    def holds(self, condition: Any) -> bool:
        """An ``if:``, with or without ``${{ }}``; without a status function it also needs success."""
        text = str(condition).strip()
        if isinstance(condition, bool):
            text = str(condition).lower()
        if (whole := _EXPRESSION.fullmatch(text)) is not None:
            text = whole[1]
        implied = True if STATUS.search(text) else self._functions["success"]()
        return bool(implied and _truth(self.value(text)))

    def value(self, text: str) -> Any:
        """What an expression stands for. Raises ``ValueError`` for one that this evaluator does not know."""
        tokens = []
        at = 0
        stripped = text.rstrip()
        while at < len(stripped):
            match = _TOKEN.match(stripped, at)
            if match is None:
                raise ValueError(f"not understood: {text!r} at {at}")
            tokens.append((str(match.lastgroup), match[match.lastgroup]))  # type: ignore[index]  # one group always matches
            at = match.end()
        parser = _Parser(tokens, self._contexts, self._functions)
        value = parser.either()
        if parser.rest():
            raise ValueError(f"not understood: {text!r}")
        return value


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]], contexts: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]):
        self._tokens = tokens
        self._at = 0
        self._contexts = contexts
        self._functions = functions

    def rest(self) -> bool:
        return self._at < len(self._tokens)

    def either(self) -> Any:
        value = self._both()
        while self._take("||"):
            other = self._both()
            value = value if _truth(value) else other
        return value

    def _both(self) -> Any:
        value = self._compared()
        while self._take("&&"):
            other = self._compared()
            value = other if _truth(value) else value
        return value

    def _compared(self) -> Any:
        value = self._single()
        for sign, wanted in (("==", True), ("!=", False)):
            if self._take(sign):
                return _equal(value, self._single()) is wanted
        return value

    def _single(self) -> Any:
        if self._take("!"):
            return not _truth(self._single())
        if self._take("("):
            value = self.either()
            self._need(")")
            return value
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind == "number":
            return float(text) if "." in text else int(text)
        if kind == "name":
            return self._named(text)
        raise ValueError(f"unexpected {text!r}")

    def _named(self, name: str) -> Any:
        if name in ("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[name]
        if self._take("("):
            arguments = []
            while not self._take(")"):
                arguments.append(self.either())
                self._take(",")
            return self._below(self._functions[name](*arguments))
        if name not in self._contexts:
            raise ValueError(f"there is no context {name!r}")
        return self._below(self._contexts[name])

    def _below(self, value: Any) -> Any:
        while self._take("."):
            key = self._tokens[self._at][1]
            self._at += 1
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def _take(self, sign: str) -> bool:
        if self.rest() and self._tokens[self._at] == ("sign", sign):
            self._at += 1
            return True
        return False

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise ValueError(f"{sign!r} is missing")


def text_of(value: Any) -> str:
    """How a value is written into a text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def _truth(value: Any) -> bool:
    return value not in (None, False, 0, "")


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one.casefold() == other.casefold()
    if type(one) is type(other):
        return bool(one == other)
    return _number(one) == _number(other)


def _number(value: Any) -> float:
    if value in (None, ""):
        return 0.0
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")
