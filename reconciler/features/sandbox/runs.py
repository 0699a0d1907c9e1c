"""A local Kafka for a person, or for the length of one command."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from reconciler.errors import SandboxError, UsageError
from reconciler.features.sandbox import Sandbox, SandboxSpec

if TYPE_CHECKING:
    from reconciler.ports import Progress

_NOTICED_S: Final = 2.0
"""How long a command has to end by itself after an interrupt, which on a terminal it gets too."""
_TERM_S: Final = 3.0


def run_in_sandbox(spec: SandboxSpec, command: Sequence[str], *, progress: Progress) -> int:
    """Run ``command`` beside a sandbox of its own that is gone afterwards; the command's exit code (128 + N for signal N).

    The command finds the sandbox in its environment: ``KAFKA_QUOTAS_BOOTSTRAP_SERVER`` and ``BOOTSTRAP_SERVER``, and when there
    are users ``SASL_BOOTSTRAP_SERVER``, when there is a ZooKeeper ``ZOOKEEPER``; ``KAFKA_QUOTAS_SANDBOX`` is its folder. Raises
    ``UsageError`` for a command that does not exist.
    """
    from reconciler.features.sandbox.cluster import running

    program = shutil.which(command[0])
    if program is None:
        raise UsageError(f"cannot run {command[0]!r}: there is no such program")
    with running(spec, progress=progress) as sandbox:
        code = _run(program, command, {**os.environ, **_environment(sandbox)})
    return code if code >= 0 else 128 - code


def _environment(sandbox: Sandbox) -> dict[str, str]:
    variables = {
        "KAFKA_QUOTAS_BOOTSTRAP_SERVER": sandbox.bootstrap_servers,
        "BOOTSTRAP_SERVER": sandbox.bootstrap_servers,
        "KAFKA_QUOTAS_SANDBOX": str(sandbox.folder),
    }
    if sandbox.sasl_bootstrap_servers:
        variables["SASL_BOOTSTRAP_SERVER"] = sandbox.sasl_bootstrap_servers
    if sandbox.zookeeper:
        variables["ZOOKEEPER"] = sandbox.zookeeper
    return variables


def _run(program: str, command: Sequence[str], environ: dict[str, str]) -> int:
    # A command that may read the terminal must stay in our process group; any other gets its own, so that it can be ended whole.
    own_group = not _has_terminal()
    try:
        process = subprocess.Popen(list(command), executable=program, env=environ, process_group=0 if own_group else None)
    except OSError as error:
        raise SandboxError(f"cannot run {command[0]!r}: {error.strerror}") from error
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            _end(process, own_group=own_group)


def _has_terminal() -> bool:
    try:
        return os.isatty(0)
    except OSError:
        return False


def _end(process: subprocess.Popen[bytes], *, own_group: bool) -> None:
    """INT, which on a terminal the command has got already, then TERM, then KILL; to its whole group where it has one."""

    def tell(number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number) if own_group else process.send_signal(number)

    try:
        if own_group:
            tell(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_NOTICED_S)
            return
        tell(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_TERM_S)
    finally:
        tell(signal.SIGKILL)
        process.wait()
