"""Without the modules and constants that only POSIX systems have, every module imports and quotas are validated and planned.

A stand-in for Windows: what is hidden here is missing there. It shows nothing of Windows' paths, consoles and signals.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.manifests import snapshot

ROOT = Path(__file__).parents[2]
HIDDEN_MODULES = ("fcntl", "grp", "pwd", "readline", "resource", "syslog", "termios", "tty", "pty")
HIDDEN_NAMES = {
    "os": (
        "O_CLOEXEC", "O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "POSIX_SPAWN_OPEN", "fchmod", "fork",
        "geteuid", "getuid", "killpg", "pipe2", "posix_spawn", "pread", "setsid",
    ),
    "signal": ("SIGHUP", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "pthread_sigmask"),
}  # fmt: skip
HIDE = f"""
import asyncio, os, signal, subprocess, sys  # the standard library as it is here
for name in {HIDDEN_MODULES!r}:
    sys.modules[name] = None
for module, names in {HIDDEN_NAMES!r}.items():
    for name in names:
        delattr(sys.modules[module], name)
"""
IMPORT_ALL = """
import importlib, pkgutil, reconciler
names = [module.name for module in pkgutil.walk_packages(reconciler.__path__, "reconciler.") if "__main__" not in module.name]
for name in names:
    importlib.import_module(name)
print(len(names))
"""
RUN = """
import json
from reconciler.cli.main import main
for arguments in json.loads(sys.argv[1]):
    if code := main(arguments):
        sys.exit(code)
"""
QUICKSTART = ROOT / "examples" / "quickstart"


def without_posix(script: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", HIDE + script, *arguments]
    return subprocess.run(command, cwd=cwd, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)


def test_every_module_imports(tmp_path: Path) -> None:
    done = without_posix(IMPORT_ALL, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 300


def test_quotas_are_validated_planned_and_resolved(tmp_path: Path) -> None:
    (tmp_path / "now.json").write_text(snapshot({}), encoding="utf-8")

    validate = ("validate", str(QUICKSTART))
    plan = ("plan", str(QUICKSTART), "--current", "now.json", "--out", "json=plan.json")
    resolve = ("resolve", str(QUICKSTART), "--state", "manifests", "--name", "user=payments", "--format", "json")
    done = without_posix(RUN, json.dumps((validate, plan, resolve)), cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))["changes"]
    assert '"producer_byte_rate": {' in done.stdout


def test_a_log_that_needs_locks_is_refused_with_a_sentence(tmp_path: Path) -> None:
    script = "from pathlib import Path\nfrom reconciler.files import append_line\nappend_line(Path('audit.jsonl'), '{}')\n"

    done = without_posix(script, cwd=tmp_path)

    assert "FileAccessError: cannot append to audit.jsonl: This system has no POSIX file locks" in done.stderr
    assert (tmp_path / "audit.jsonl").read_bytes() == b""
