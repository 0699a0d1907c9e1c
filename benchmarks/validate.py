"""``validate`` against a bare compose of the same files: ``python -m benchmarks.validate [--large]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.manifests import write_manifests
from benchmarks.measure import cpu_seconds, machine, process, row

COMPOSE = """
import sys, yaml
for name in sys.argv[1:]:
    with open(name, "rb") as stream:
        yaml.compose(stream, Loader=yaml.CSafeLoader)
"""
RUN = (sys.executable, "-m", "reconciler")


def compare(folder: Path, paths: list[Path], *, times: int) -> None:
    """Both in processes of their own, less their start-up, and the parts of ``validate`` in this one. CPU time throughout."""
    with tempfile.TemporaryDirectory() as small:
        write_manifests(Path(small), entries=1, files=1)
        start_up = process(*RUN, "validate", small, times=times)
    python = process(sys.executable, "-c", "import yaml", times=times)
    composed = process(sys.executable, "-c", COMPOSE, *map(str, paths), times=times)
    bare = composed.cpu - python.cpu
    whole = process(*RUN, "validate", str(folder), times=times)
    row("python and import yaml", python.cpu)
    row("start-up: validate of one entry, whole process", start_up.cpu)
    row("bare compose, without python's start", bare, bare, f"peak {composed.peak:.0f} MB")
    row("validate, whole process", whole.cpu, bare, f"peak {whole.peak:.0f} MB, wall clock {whole.wall:.2f} s")
    row("validate, without start-up", whole.cpu - start_up.cpu, bare)

    from reconciler.workflows.intent import lint_offline, validate_manifests
    from reconciler.workflows.load import desired_for, load_manifests

    loaded = load_manifests([str(folder)])
    spec, desired, _ = desired_for(loaded, None)
    row("  in one process: reading and checking the files", cpu_seconds(lambda: load_manifests([str(folder)]), times=times), bare)
    row("  in one process: lint", cpu_seconds(lambda: lint_offline(loaded, spec, desired), times=times), bare)
    row("  in one process: all of validate", cpu_seconds(lambda: validate_manifests([str(folder)]), times=times), bare)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="also 100,000 entries, in 200 files and in one")
    parser.add_argument("--times", type=int, default=5)
    args = parser.parse_args()
    print(machine())
    sizes = [(5_000, 200), *([(100_000, 200), (100_000, 1)] if args.large else [])]
    for entries, files in sizes:
        with tempfile.TemporaryDirectory() as folder:
            paths = write_manifests(Path(folder), entries=entries, files=files)
            print(f"\n{entries} entries in {files} files, {sum(p.stat().st_size for p in paths) / 1e6:.1f} MB")
            compare(Path(folder), paths, times=args.times if entries < 50_000 else 2)


if __name__ == "__main__":
    main()
