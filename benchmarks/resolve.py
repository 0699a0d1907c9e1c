"""``resolve`` of as many principals as there are entities: the work after the describe, and with ``--broker`` whole processes.

``python -m benchmarks.resolve [--broker] [--times N]``
"""

from __future__ import annotations

import argparse
import collections
import gc
import io
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.describe import BARE, fill
from benchmarks.measure import cpu_seconds, machine, process, row
from benchmarks.validate import RUN

SIZES = (25_000, 50_000, 100_000)


def principals(number: int) -> bytes:
    """JSON lines: every user with one of fifty client ids."""
    return b"".join(
        json.dumps({"user": f"team-{n % 200}-service-{n}", "client-id": f"app-{n % 50}"}).encode() + b"\n" for n in range(number)
    )


def pure(number: int, *, times: int) -> float:
    """Reading the principals, building the tables, answering and writing; entities of six of the eight levels."""
    from reconciler.features.resolving.documents import answer_json_lines
    from reconciler.model.entity import DEFAULT, Entity
    from reconciler.resolution.effective_quotas import EffectiveQuotas, ResolveOptions
    from reconciler.workflows.plan_effects import parse_clients

    quotas = {}
    for n in range(number):
        user, client_id = f"team-{n % 200}-service-{n}", f"app-{n % 50}"
        shape = {"user": user} if n % 10 < 6 else {"user": user, "client-id": client_id} if n % 10 < 8 else {"client-id": user}
        quotas[Entity.of(shape)] = {"producer_byte_rate": 1e6 + n, "consumer_byte_rate": 2e6}
    quotas[Entity.of({"user": DEFAULT})] = {"request_percentage": 200.0}
    quotas[Entity.of({"user": DEFAULT, "client-id": DEFAULT})] = {"controller_mutation_rate": 10.0}
    asked = principals(number)

    def lines(wanted: ResolveOptions, *, clients: int) -> None:
        parsed = parse_clients(io.BytesIO(asked), "principals")[:clients]
        written = answer_json_lines(EffectiveQuotas(quotas), parsed, wanted, seen=lambda _: None)
        collections.deque(written, maxlen=0)

    took = cpu_seconds(lambda: lines(ResolveOptions(), clients=number), times=times)
    row(f"{number} principals against {number} entities, JSON lines", took, note=f"{took / number * 1e6:.1f} us each")
    if number == SIZES[-1]:
        read = cpu_seconds(lambda: parse_clients(io.BytesIO(asked), "principals"), times=times)
        row("  of which reading the principals", read)
        row("  of which building the tables", cpu_seconds(lambda: EffectiveQuotas(quotas), times=times))
        overrides, members = ResolveOptions(include_overrides=True), ResolveOptions(members=3)
        row("the same with what is hidden", cpu_seconds(lambda: lines(overrides, clients=number), times=times))
        row("the same with three members of each bucket", cpu_seconds(lambda: lines(members, clients=number), times=times))
        row("one principal among as many entities", cpu_seconds(lambda: lines(ResolveOptions(), clients=1), times=times) - read)
    return took


def against_a_broker(number: int, *, times: int) -> None:
    """One describe and then the answers, whole processes."""
    from reconciler.features.sandbox.cluster import running
    from reconciler.features.sandbox.spec import SandboxSpec

    note = "CPU {0.cpu:.2f} s, peak {0.peak:.0f} MB"
    with running(SandboxSpec(heap_mb=2048)) as sandbox, tempfile.TemporaryDirectory() as folder:
        servers = sandbox.bootstrap_servers
        fill(servers, number)
        asked = Path(folder, "principals.jsonl")
        asked.write_bytes(principals(number))
        bare = process(sys.executable, "-c", BARE, servers, times=times)
        row(f"bare describe and decode of {number} entities", bare.wall, bare.wall, note.format(bare))
        command = (*RUN, "resolve", "--bootstrap-server", servers)
        for words in (("--from", str(asked), "--format", "jsonl"), ("--from", str(asked)), ("--all", "--format", "jsonl")):
            done = process(*command, *words, times=times)
            shown = " ".join(word for word in words if word != str(asked))
            row(f"resolve {shown}", done.wall, bare.wall, note.format(done))
        done = process(*command, "--name", "user=team-7-service-7", times=times)
        row("resolve --name user=team-7-service-7", done.wall, bare.wall, note.format(done))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", action="store_true", help="also against a real broker, which it starts and stops")
    parser.add_argument("--times", type=int, default=3)
    args = parser.parse_args()
    print(machine())
    gc.disable()  # As the command does.
    took = [pure(number, times=args.times) for number in SIZES]
    row("100,000 against 25,000: 4 x is linear", took[-1], took[0])
    if args.broker:
        against_a_broker(SIZES[-1], times=args.times)


if __name__ == "__main__":
    main()
