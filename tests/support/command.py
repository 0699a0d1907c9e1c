"""Runs the command as a user would, in a process of its own; or in this one, where the process is not what is tested."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from reconciler.logs import LIBRARIES
from tests.support.warm_process import Started, WarmProcess

COMMAND = (sys.executable, "-m", "reconciler")
PROGRESS = re.compile(r"^kafka-quotas: [a-zS][^\n]* \([\d.]+ (?:s|min)\)\n", re.MULTILINE)
"""A line each ten seconds: a busy machine makes more of them than an idle one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How a run of the command ended."""

    code: int
    out: str
    err: str
    """Without progress."""

    def json(self) -> Any:
        """Stdout as the one JSON document it must be."""
        return json.loads(self.out)


def run(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 600) -> Done:
    """Run ``kafka-quotas`` with these arguments, no terminal, and nothing on stdin; never with a traceback.

    The process is forked from one that has imported the modules, or begins as a new interpreter if ``env`` has something for it.
    """
    variables = environment(env)
    warm = warm_process()
    if warm.can_run(variables):
        code, out, err = warm.run(arguments, cwd=cwd, environ=variables, timeout=timeout)
        return _done(arguments, code, out, err)
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return _done(arguments, done.returncode, done.stdout, done.stderr)


def _done(arguments: Sequence[str], code: int, out: str, err: str) -> Done:
    assert "Traceback" not in err or "-vv" in arguments, err
    return Done(code=code, out=out, err=PROGRESS.sub("", err))


def run_script(script: str, *, cwd: Path, shell: Sequence[str] = ("sh", "-e"), env: Mapping[str, str] | None = None) -> Done:
    """Run a script of a shell in which ``kafka-quotas`` is a command."""
    root = str(Path(__file__).parents[2])
    extra = {"PATH": f"{warm_process().programs()}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": root, **(env or {})}
    done = subprocess.run(
        [*shell, "-c", script],
        cwd=cwd,
        env=environment(extra),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return _done((), done.returncode, done.stdout, done.stderr)


def run_on(files: tuple[int, int, int], *arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> int:
    """``run`` on these open files as standard input, output and error: the exit code."""
    warm, variables = warm_process(), environment(env)
    assert warm.can_run(variables)
    return warm.run_on(files, arguments, cwd=cwd, environ=variables, timeout=600)


def start_on(files: tuple[int, int, int], *arguments: str, cwd: Path) -> Started:
    """``run_on`` without waiting for its end."""
    return warm_process().start(files, arguments, cwd=cwd, environ=environment())


@functools.cache
def warm_process() -> WarmProcess:
    """Of this test process."""
    return WarmProcess()


@contextlib.contextmanager
def running(
    *arguments: str, cwd: Path, command: Sequence[str] = COMMAND, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """``kafka-quotas`` as a process that goes on meanwhile; killed at the end of the block if it still runs."""
    with subprocess.Popen(
        [*command, *arguments],
        cwd=cwd,
        env=environment(env),
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


class Command(Protocol):
    """``run``, or what takes its place."""

    def __call__(self, *arguments: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 600) -> Done:
        """Run ``kafka-quotas`` with these arguments in this folder."""


def invoke(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 600) -> Done:
    """``run`` without a new process: Python's modules are imported and its Spark, where one runs, is started already.

    ``timeout`` is there for the sake of ``Command``, and without effect.
    """
    from reconciler.cli.main import main

    out, err = io.BytesIO(), io.BytesIO()
    stdout, stderr = (io.TextIOWrapper(stream, encoding="utf-8", write_through=True) for stream in (out, err))
    with (
        contextlib.chdir(cwd),
        environ_set_to(environment(env)),
        no_input(),
        logging_restored(),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        try:
            code = main(arguments)
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    return _done(arguments, code, out.getvalue().decode(), err.getvalue().decode())


@contextlib.contextmanager
def no_input() -> Iterator[None]:
    """Standard input is at its end."""
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO())
    try:
        yield
    finally:
        sys.stdin = before


@contextlib.contextmanager
def logging_restored() -> Iterator[None]:
    """What the command sets of loggers ends with it, as it does in a process."""
    loggers = [logging.getLogger(name) for name in (None, "reconciler", *LIBRARIES)]
    before = [(log, log.level, log.propagate, list(log.handlers)) for log in loggers]
    try:
        yield
    finally:
        for log, level, propagate, handlers in before:
            log.setLevel(level)
            log.propagate = propagate
            log.handlers[:] = handlers


@contextlib.contextmanager
def environ_set_to(variables: Mapping[str, str]) -> Iterator[None]:
    """This process's environment is ``variables`` and nothing else; what it was comes back."""
    before = dict(os.environ)
    try:
        os.environ.clear()
        os.environ.update(variables)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what would change the command's output, and with this source tree importable."""
    kept = {k: v for k, v in os.environ.items() if k not in {"CI", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"}}
    return {**kept, **(extra or {})}
