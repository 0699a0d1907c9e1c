"""``describe`` of 100,000 entities on a real broker, whole processes, against a bare describe-and-decode.

``python -m benchmarks.describe [--entities N] [--times N]``
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.manifests import values_of
from benchmarks.measure import machine, process, row
from benchmarks.validate import RUN

BARE = """
import sys
from reconciler.backends.broker.cluster import BrokerCluster
from reconciler.backends.broker.settings import ConnectionSettings, parse_servers
from reconciler.ports import EntityFilter
cluster = BrokerCluster.open(ConnectionSettings(servers=parse_servers((sys.argv[1],))))
print(len(cluster.describe(EntityFilter())))
cluster.close()
"""
_ENTITIES_A_REQUEST = 2000


def fill(servers: str, entities: int) -> None:
    """Users with two byte rates, far above what the benchmark itself sends."""
    from reconciler.backends.broker.cluster import BrokerCluster
    from reconciler.backends.broker.settings import ConnectionSettings, parse_servers
    from reconciler.model.entity import Entity
    from reconciler.model.plan import Alteration
    from reconciler.ports import EntityFilter

    cluster = BrokerCluster.open(ConnectionSettings(servers=parse_servers((servers,))))
    for start in range(0, entities, _ENTITIES_A_REQUEST):
        numbers = range(start, min(entities, start + _ENTITIES_A_REQUEST))
        cluster.alter(
            [
                Alteration(
                    entity=Entity.of({"user": f"team-{number % 200}-service-{number}"}),
                    ops={key: float(value) for key, value in values_of(number).items()},
                )
                for number in numbers
            ],
            validate_only=False,
        )
    while len(cluster.describe(EntityFilter())) < entities:
        pass
    cluster.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entities", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=3)
    args = parser.parse_args()
    from reconciler.features.sandbox.cluster import running
    from reconciler.features.sandbox.spec import SandboxSpec

    print(machine())
    with running(SandboxSpec(heap_mb=2048)) as sandbox:
        servers = sandbox.bootstrap_servers
        fill(servers, args.entities)
        bare = process(sys.executable, "-c", BARE, servers, times=args.times)
        row(f"bare describe and decode of {args.entities} entities", bare.wall, bare.wall, f"CPU {bare.cpu:.2f} s")
        wanted: list[tuple[str, ...]] = [("--format", form) for form in ("text", "json")]
        # The broker filters by name; prefixes are filtered here, from what it has of all users.
        wanted += [("--prefix", "user=team-7-"), ("--name", "user=team-7-service-7")]
        for options in wanted:
            done = process(*RUN, "describe", "--bootstrap-server", servers, *options, times=args.times)
            note = f"CPU {done.cpu:.2f} s, {done.cpu / bare.cpu:.2f} x, peak {done.peak:.0f} MB"
            row(f"describe {' '.join(options)}", done.wall, bare.wall, note)


if __name__ == "__main__":
    main()
