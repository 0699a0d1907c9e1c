"""``apply`` beside a Java and a Go program, ConfigCommand, and the bare sum of its parts: ``python -m benchmarks.apply``.

Every figure is a whole process, start-up included; ours reads YAML, validates everything first and reads everything back, the
others do not.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.apply.comparison import compare, compare_config_command
from benchmarks.apply.programs import BARE, BARE_OWN, OURS, go_program, java_program
from benchmarks.apply.scenes import SCENES, write_wanted
from benchmarks.measure import machine
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.jars import DEFAULT_KAFKA_VERSION
from reconciler.features.sandbox.spec import SandboxSpec

_FROM_EMPTY = "from empty"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.apply", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000], help="compared with Java and Go")
    parser.add_argument("--scenes", nargs="*", choices=SCENES, default=list(SCENES))
    parser.add_argument("--large", type=int, default=100_000, help="compared with the bare sum of its parts; 0: not at all")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--without-go", action="store_true")
    parser.add_argument("--config-commands", type=int, default=5, help="entities that ConfigCommand sets; 0: not at all")
    args = parser.parse_args()
    print(f"{machine()}; Kafka {DEFAULT_KAFKA_VERSION}, one node", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if args.sizes:
            with _new_broker() as server:
                _beside_others(server, folder, args)
        if args.large:
            wanted = write_wanted(folder, entities=args.large)
            compare(_new_broker, wanted, [OURS, BARE_OWN, BARE], scene=_FROM_EMPTY, times=3)


@contextlib.contextmanager
def _new_broker() -> Iterator[str]:
    with running(SandboxSpec(heap_mb=2048)) as sandbox:
        yield sandbox.bootstrap_servers


def _beside_others(server: str, folder: Path, args: argparse.Namespace) -> None:
    rivals = (None if args.without_go else go_program(folder), java_program(folder))
    programs = [OURS, *(one for one in rivals if one is not None)]
    for size in args.sizes:
        wanted = write_wanted(folder, entities=size)
        for scene in args.scenes:
            ours = compare(lambda: contextlib.nullcontext(server), wanted, programs, scene=scene, times=args.times)[OURS.name]
            if scene == _FROM_EMPTY and args.config_commands:
                compare_config_command(server, ours, entities=size, times=args.config_commands)


if __name__ == "__main__":
    main()
