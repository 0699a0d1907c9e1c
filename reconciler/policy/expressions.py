"""Expressions of policies, in CEL: checked once, then evaluated over the plan's document.

The library is Google's own evaluator. An expression reads its variables and nothing else, its loops end after 10,000 steps, and
its regular expressions are RE2. Whatever cannot be evaluated is an error, which the caller takes for a violation.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from reconciler.errors import MissingPackageError
from reconciler.model import PolicySubject

MAX_EXPRESSION: Final = 4000
"""Characters of one expression."""
_PROBLEM: Final = re.compile(r"^(?:[A-Z_]+: )?ERROR: <input>:(-?[0-9]+):(-?[0-9]+): (.*)$", re.MULTILINE)
_STATUS: Final = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_CONTAINER: Final = " (in container '')"
_BOOL: Final = "BOOL"
_MIXED: Final = "No matching overloads found"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionProblem:
    """What is wrong with an expression. ``line`` and ``column`` count from 1; 0 where the place is not known."""

    message: str
    line: int = 0
    column: int = 0


class ExpressionError(Exception):
    """An expression that cannot be compiled or evaluated."""

    def __init__(self, problems: Sequence[ExpressionProblem]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = tuple(problems)


def check_expression(text: str, subject: PolicySubject) -> tuple[ExpressionProblem, ...]:
    """What is wrong with an expression, before it is evaluated. Raises ``MissingDependencyError``."""
    try:
        _compiled(text, subject)
    except ExpressionError as error:
        return error.problems
    return ()


def evaluate_expression(text: str, subject: PolicySubject, variables: Mapping[str, object]) -> bool:
    """The value. Raises ``ExpressionError``, also for a value that is not true or false, and ``MissingDependencyError``."""
    program = _compiled(text, subject)
    try:
        value = program.eval(data=dict(variables))
        kind, result = value.type().name(), value.value()
    except (RuntimeError, TypeError, ValueError) as error:
        raise _error(str(error)) from None
    if kind == _BOOL or isinstance(result, bool):
        return bool(result)
    if kind == "ERROR":
        raise _error(str(result))
    raise _error(f"the result is {kind.lower()}, and must be true or false")


def _error(text: str) -> ExpressionError:
    message = _STATUS.sub("", _STATUS.sub("", text.strip()))
    if _MIXED in message:
        message += ". Quota values and other fractions are of type double, so write 2.0 instead of 2 beside them"
    return ExpressionError((ExpressionProblem(message=message),))


@lru_cache(maxsize=1024)
def _compiled(text: str, subject: PolicySubject) -> Any:
    if len(text) > MAX_EXPRESSION:
        raise _error(f"the expression has {len(text)} characters, and {MAX_EXPRESSION} is the most")
    try:
        program = _environment(subject).compile(text)
    except RuntimeError as error:
        raise ExpressionError(_problems(str(error))) from None
    kind = program.return_type().name()
    if kind not in (_BOOL, "DYN"):
        message = f"the result is {kind.lower()}, and must be true or false"
        raise ExpressionError((ExpressionProblem(message=message, line=1, column=1),))
    return program


@lru_cache(maxsize=8)
def _environment(subject: PolicySubject) -> Any:
    try:
        from cel_expr_python import cel
    except ImportError as error:
        raise MissingPackageError("policies need", "cel_expr_python") from error
    variables = {"plan": cel.Type.DYN, "cluster": cel.Type.DYN, "now": cel.Type.TIMESTAMP}
    if subject is PolicySubject.CHANGE:
        variables["change"] = cel.Type.DYN
    return cel.NewEnv(variables=variables)


def _problems(text: str) -> tuple[ExpressionProblem, ...]:
    """Lines and columns of CEL, where a line begins with column 1, and -1 stands for an unknown place."""
    problems = [
        ExpressionProblem(message=message.removesuffix(_CONTAINER), line=max(0, int(line)), column=max(0, int(column)))
        for line, column, message in _PROBLEM.findall(text)
    ]
    return tuple(dict.fromkeys(problems)) or _error(text).problems


def policy_time(now: datetime.datetime) -> datetime.datetime:
    """The moment of ``now`` in expressions: UTC, whole seconds."""
    return now.astimezone(datetime.UTC).replace(microsecond=0)
