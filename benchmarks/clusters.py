"""Many owners and many clusters on one real broker: plan, comment, apply with one owner blocked, run, report; whole processes.

Each Cluster manifest has a scope of its own on the same broker, so every cluster costs a connection, a describe and its writes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import machine

_HEAD = "apiVersion: kafka-quotas/v1\n"


def _write(folder: Path, *, owners: int, clusters: int, server: str, cluster_id: str, rate: str = "1MiB") -> None:
    """A file for each owner, with one user on each cluster."""
    listed = "".join(f'    t{o}: {{paths: ["teams/{o}/**"]}}\n' for o in range(owners))
    stages = "[staging, canary, prod]"
    head = f"{_HEAD}kind: Repository\nspec:\n  clusterPaths: [clusters/*]\n  stages: {stages}\n  owners:\n{listed}"
    (folder / "kafka-quotas.yaml").write_text(head, encoding="utf-8")
    (folder / "clusters").mkdir(exist_ok=True)
    for number in range(clusters):
        stage = "staging" if number < clusters // 10 else "canary" if number < clusters // 5 else "prod"
        spec = {
            "prune": "confirm",
            "isolate": "owner",
            "clusterId": cluster_id,
            "connection": {"bootstrapServers": [server]},
            "scope": {"include": [{"user": {"prefix": f"c{number}-"}}]},
        }
        metadata = {"name": f"c{number}", "labels": {"stage": stage}}
        text = f"{_HEAD}kind: Cluster\nmetadata: {json.dumps(metadata)}\nspec: {json.dumps(spec)}\n"
        (folder / "clusters" / f"c{number}.yaml").write_text(text, encoding="utf-8")
    for owner in range(owners):
        _write_owner(folder, owner, clusters, rate)


def _write_owner(folder: Path, owner: int, clusters: int, rate: str) -> None:
    documents = (
        f"{_HEAD}kind: ClientQuotas\nmetadata: {{owner: t{owner}}}\nspec:\n  clusters: [c{number}]\n  quotas:\n"
        f"    - match: {{user: c{number}-t{owner}}}\n      quotas: {{producer_byte_rate: {rate}}}\n"
        for number in range(clusters)
    )
    place = folder / "teams" / str(owner)
    place.mkdir(parents=True, exist_ok=True)
    (place / "quotas.yaml").write_text("---\n".join(documents), encoding="utf-8")


def _timed(what: str, *arguments: str, folder: Path, expected: int) -> None:
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "reconciler", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode != expected:
        sys.exit(f"{what} ended with {done.returncode}, not {expected}: {done.stderr[-2000:]}{done.stdout[-2000:]}")
    last = done.stdout.strip().splitlines()[-1][:100] if done.stdout.strip() else ""
    print(f"{what:44} {time.perf_counter() - begun:7.1f} s {cpu:7.1f} s CPU   {last}", flush=True)


def _follow(*, folder: Path, clusters: int) -> None:
    """Start the service, and end it after the first pass of every cluster."""
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "reconciler", "run", ".", "--all-clusters", "--apply", "--port", "0", "--log-format", "json"]
    results: list[str] = []
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as service:
        assert service.stderr is not None
        for row in map(json.loads, service.stderr):
            if row["event"] == "pass":
                results.append(row["result"])
            if len(results) == clusters:
                wall = time.perf_counter() - begun
                service.terminate()
                break
        service.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    counts = ", ".join(f"{results.count(each)} {each}" for each in sorted({*results}))
    print(f"{'run, first pass of every cluster':44} {wall:7.1f} s {cpu:7.1f} s CPU   {counts}", flush=True)


def main() -> None:
    """``--owners``, ``--clusters``, ``--parallel``."""
    from reconciler.features.sandbox import SandboxSpec, running

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--owners", type=int, default=300)
    parser.add_argument("--clusters", type=int, default=40)
    parser.add_argument("--parallel", default="8")
    asked = parser.parse_args()
    print(machine(), f"load {os.getloadavg()[0]:.1f}")
    with running(SandboxSpec()) as sandbox, tempfile.TemporaryDirectory() as name:
        folder, server = Path(name), sandbox.bootstrap_servers
        subprocess.run(
            [sys.executable, "-m", "reconciler", "export", "--bootstrap-server", server, "--snapshot", "s.json"],
            cwd=folder,
            check=True,
            capture_output=True,
        )
        cluster_id = json.loads((folder / "s.json").read_text())["cluster"]["id"]
        _write(folder, owners=asked.owners, clusters=asked.clusters, server=server, cluster_id=cluster_id)
        every = ("--all-clusters", "--parallel", asked.parallel)
        _timed("apply, everything new", "apply", *every, "--auto-approve", "--quiet", folder=folder, expected=0)
        _timed("plan, nothing to do", "plan", *every, folder=folder, expected=0)
        for owner in range(asked.owners):
            _write_owner(folder, owner, asked.clusters, "1KiB" if owner == 0 else "2MiB")
        _timed("plan, one owner blocked", "plan", *every, "--out", "json=plans.json", folder=folder, expected=0)
        markdown = ("--cluster", "c0", "--out", "markdown=comment.md", "--accept", "too-many-changes")
        _timed("plan and comment of one cluster", "plan", *markdown, folder=folder, expected=0)
        accept = ("--accept", "too-many-changes")
        _timed("apply, one owner blocked", "apply", *every, "--auto-approve", *accept, folder=folder, expected=3)
        (folder / "teams" / "0" / "quotas.yaml").write_text("kind: [\n", encoding="utf-8")
        _timed("plan, one owner with a broken file", "plan", *every, folder=folder, expected=1)
        _write_owner(folder, 0, asked.clusters, "1MiB")
        _follow(folder=folder, clusters=asked.clusters)
        _timed("report of all clusters", "report", ".", "--out", "html=report.html", folder=folder, expected=0)
        print(f"report: {(folder / 'report.html').stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
