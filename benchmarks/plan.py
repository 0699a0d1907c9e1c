"""Plans of 100,000 entities: the difference alone, and with ``--broker`` a plan with nothing to do against a real broker.

``python -m benchmarks.plan [--broker | --units] [--entities N]``
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
from pathlib import Path

from benchmarks.manifests import values_of, write_manifests, write_units
from benchmarks.measure import cpu_seconds, machine, process, row
from benchmarks.validate import COMPOSE, RUN
from reconciler.ports import SystemClock

DESCRIBE = """
import sys
from reconciler.workflows.connect import Access, open_cluster
from reconciler.model.cluster import ClusterSpec
cluster = open_cluster(ClusterSpec(), Access(bootstrap_server=sys.argv[1]))
print(len(cluster.current_state().entities))
cluster.close()
"""


def pure(entities: int, folder: Path, *, times: int) -> None:
    """One in a hundred users has another value on the cluster."""
    from reconciler.formats import plan_digest
    from reconciler.model import ManifestCommit
    from reconciler.model.entity import Entity
    from reconciler.model.state import ClusterIdentity, CurrentState, Observed, ObservedFrom
    from reconciler.planning.diff import difference, sort_for_writing
    from reconciler.workflows.intent import lint_change, load_intent
    from reconciler.workflows.plan import plan_from

    intent = load_intent([str(folder)], cluster=None)
    live = {}
    for number in range(entities):
        values = {key: float(value) for key, value in values_of(number).items()}
        if number % 100 == 0:
            values["producer_byte_rate"] *= 1.5
        live[Entity.of({"user": f"team-{number % 200}-service-{number}"})] = values
    observed = Observed(at=SystemClock().now(), origin=ObservedFrom.SNAPSHOT)
    current = CurrentState(cluster=ClusterIdentity(id="bench"), observed=observed, entities=live)

    def diffed() -> str:
        found = difference(intent.desired, current, scope=intent.spec.scope, prune=intent.spec.prune)
        return plan_digest("bench", sort_for_writing(found.changes, live))

    plan = plan_from(intent, current, accepted=(), source=ManifestCommit(), clock=SystemClock())
    print(f"{entities} entities on both sides, {len(plan.changes)} changes")
    row("difference, order and digest", cpu_seconds(diffed, times=times))
    row(
        "the plan: the same with guards and lint",
        cpu_seconds(lambda: plan_from(intent, current, accepted=(), source=ManifestCommit(), clock=SystemClock()), times=times),
    )
    lint = cpu_seconds(lambda: lint_change(intent.desired, current, plan.changes, severities={}), times=times)
    row("  of which lint", lint)


def with_units(entities: int, folder: Path, *, times: int) -> None:
    """The same entities, of which a fifth have totals, shares, profiles and parts of budgets: read, computed and planned."""
    from reconciler.model import ManifestCommit
    from reconciler.model.entity import Entity
    from reconciler.model.state import ClusterIdentity, CurrentState, Observed, ObservedFrom
    from reconciler.workflows.intent import load_intent
    from reconciler.workflows.plan import plan_from

    live = {}
    for number in range(entities):
        live[Entity.of({"user": f"service-{number}"})] = {"producer_byte_rate": 1048576.0, "consumer_byte_rate": 2097152.0}
    observed = Observed(at=SystemClock().now(), origin=ObservedFrom.SNAPSHOT)
    current = CurrentState(cluster=ClusterIdentity(id="bench"), observed=observed, entities=live, brokers=(1, 2, 3, 4))

    def planned(manifests: Path) -> int:
        intent = load_intent([str(manifests)], cluster=None)
        plan = plan_from(intent, current, accepted=(), source=ManifestCommit(), clock=SystemClock())
        return len(plan.changes)

    plain = write_units(folder / "plain", entries=entities, files=200, every=0)
    units = write_units(folder / "units", entries=entities, files=200, every=5)
    for name, manifests in (("plain numbers", plain), ("a fifth with units", units)):
        print(f"{name}: {planned(manifests)} changes")
    # In turn, so that other load on the machine meets both.
    pairs = [tuple(cpu_seconds(functools.partial(planned, folder), times=1) for folder in (plain, units)) for _ in range(times)]
    base, measured = (min(column) for column in zip(*pairs, strict=True))
    row("read and plan, plain numbers", base)
    row("read and plan, a fifth with units", measured, base)


def against_a_broker(entities: int, folder: Path, paths: list[Path], *, times: int) -> None:
    """Apply everything, then plan again: nothing to do."""
    from reconciler.features.sandbox.cluster import running
    from reconciler.features.sandbox.spec import SandboxSpec

    with running(SandboxSpec(heap_mb=2048)) as sandbox:
        server = ("--bootstrap-server", sandbox.bootstrap_servers)
        applied = process(*RUN, "apply", str(folder), *server, "--auto-approve", "--quiet", times=1)
        row(f"apply of {entities} new entities, for scale", applied.wall)
        python = process(sys.executable, "-c", "import yaml", times=times)
        composed = process(sys.executable, "-c", COMPOSE, *map(str, paths), times=times)
        described = process(sys.executable, "-c", DESCRIBE, server[1], times=times)
        planned = process(*RUN, "plan", str(folder), *server, times=times)
        base = composed.wall - python.wall + described.wall
        row("bare compose of the files, without python's start", composed.wall - python.wall)
        row("bare describe and decode, whole process", described.wall, note=f"CPU {described.cpu:.2f} s")
        row("the two together", base, base)
        note = f"peak {planned.peak:.0f} MB, CPU {planned.cpu:.2f} s"
        row("plan with nothing to do, whole process, wall clock", planned.wall, base, note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entities", type=int, default=100_000)
    parser.add_argument("--broker", action="store_true", help="also against a real broker, which it starts and stops")
    parser.add_argument("--units", action="store_true", help="only the case of totals, shares, profiles and budgets")
    parser.add_argument("--times", type=int, default=3)
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        paths = write_manifests(Path(folder), entries=args.entities, files=200)
        if args.units:
            with_units(args.entities, Path(folder) / "with-units", times=args.times)
            return
        pure(args.entities, Path(folder), times=args.times)
        if args.broker:
            against_a_broker(args.entities, Path(folder), paths, times=args.times)


if __name__ == "__main__":
    main()
