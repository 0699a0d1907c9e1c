"""Pythons of several versions: this machine's by name or pyenv, and one of Debian's development suite in a root of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.java import find_java
from tests.support.container_image import HOST_FILES, debian

VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
_OF_DEBIAN: Final = {"3.14": "sid"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonProgram:
    """``prefix``: what runs a program where this Python is. ``folder``: what both see under the same path."""

    program: str
    prefix: tuple[str, ...] = ()

    def run(self, *command: str | Path, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a program with nothing of this environment's Python settings. Fails when it does."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        clean |= {"HOME": str(folder), **environment}
        whole = [*(part.replace("FOLDER", str(folder)) for part in self.prefix), *map(str, command)]
        done = subprocess.run(whole, cwd=folder, env=clean, capture_output=True, text=True, timeout=1200, check=False)
        assert done.returncode == 0, f"{whole}\n{done.stdout}{done.stderr}"
        return done


def find_python(version: str) -> PythonProgram | None:
    """``None``: this machine has none, and debootstrap, which needs root, cannot fetch one."""
    own = shutil.which(f"python{version}")
    for program in (own, *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))):
        if program is not None and _works(str(program), version):
            return PythonProgram(program=str(program))
    suite = _OF_DEBIAN.get(version)
    if suite is None or os.geteuid() != 0 or shutil.which("debootstrap") is None or shutil.which("bwrap") is None:
        return None
    root = debian(suite, f"python{version}", f"python{version}-venv")
    java = find_java().resolve().parents[1]
    # Debian keeps the settings of its Java below /etc.
    shared = [*HOST_FILES, str(java), *map(str, Path("/etc").glob("java-*-openjdk"))]
    files = [part for file in shared if Path(file).exists() for part in ("--ro-bind", file, file)]
    mounts = ["--bind", str(root), "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", "FOLDER", "FOLDER"]
    prefix = ("bwrap", "--die-with-parent", "--setenv", "JAVA_HOME", str(java), *mounts, *files)
    return PythonProgram(program=f"/usr/bin/python{version}", prefix=prefix)


def _works(program: str, version: str) -> bool:
    """pyenv's programs exist also for versions that are not chosen."""
    done = subprocess.run([program, "-V"], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode == 0 and done.stdout.startswith(f"Python {version}.")
