"""The demonstration: the whole road on a real Kafka, each step a command that a user could type."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.cli import output
from reconciler.errors import ReconcilerError
from reconciler.features.sandbox.clients import TrafficReport, consume_all, create_topic, produce_steadily
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.configuration import config_command_class
from reconciler.features.sandbox.java import runtime_for
from reconciler.features.sandbox.process import module_environment
from reconciler.features.sandbox.spec import Login, Sandbox, SandboxSpec
from reconciler.files import bundled_folder
from reconciler.ports import Progress
from reconciler.render import Style, line

KIBIBYTE: Final = 1024
MEBIBYTE: Final = 1024 * KIBIBYTE
TOPIC: Final = "events"
_QUOTAS: Final = "quotas"
_SNAPSHOT: Final = "current.json"
_AFTERWARDS_S: Final = 10.0
_RUNS: Final = 4
_ENOUGH: Final = 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """One producer of the demo; ``rate`` in bytes of record data per second."""

    user: str
    client_id: str
    rate: int


TEAMS: Final = (
    Team(user="orders", client_id="orders-service", rate=200 * KIBIBYTE),
    Team(user="payments", client_id="settlement", rate=400 * KIBIBYTE),
    Team(user="analytics", client_id="clickstream", rate=1536 * KIBIBYTE),
)
GREEDY: Final = TEAMS[-1]
READER: Final = Team(user="reporting", client_id="nightly-report", rate=0)


class DemoError(ReconcilerError):
    """A step did not end as it must; the step's own output is on the screen."""

    failure_reason = "demo"


def run_demo(*, seconds: float, progress: Progress) -> None:
    """Run every step; ``seconds`` is how long the teams send.

    Leaves no process and no folder behind, also when interrupted. Raises ``DemoError`` when a step does not end as it must, and
    ``MissingDependencyError`` without what its backtest needs.
    """
    from reconciler.traffic import require_packages

    require_packages()  # the fifth step, a minute later, is a backtest
    logins = tuple(Login(name=team.user, password=f"{team.user}-secret") for team in (*TEAMS, READER))
    _heading("1. A real Kafka broker, with its request log on")
    with (
        tempfile.TemporaryDirectory(prefix="kafka-quotas-demo-") as folder,
        running(SandboxSpec(users=logins, request_log=True), progress=progress) as sandbox,
    ):
        _say(f"Kafka {sandbox.kafka_version} (KRaft) listens on {sandbox.bootstrap_servers}. It has no quota at all yet.")
        demo = _Demo(sandbox, Path(folder))
        before = demo.traffic(seconds)
        demo.review()
        demo.apply()
        demo.throttled(before)
        _heading("8. A second plan finds nothing to do")
        demo.run("plan", _QUOTAS, *demo.server, "--detailed-exitcode")
        _heading("9. Stopping the broker")
    _say("Done. The demo leaves no process and no folder behind. Next, write manifests of your own cluster:")
    _say("  kafka-quotas init quotas --ci none --bootstrap-server HOST:PORT")
    _say("For the same steps at your own pace, read: kafka-quotas explain tutorial")


def _heading(text: str) -> None:
    output.print_lines([line(), line((text, Style.STRONG)), line()])


def _say(text: str) -> None:
    output.print_lines([line(text)])


def _command(text: str) -> None:
    output.print_lines([line(), line((f"$ {text}", Style.CREATE))])


class _Demo:
    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self._sandbox = sandbox
        # The commands name files beside them, as those of a user do.
        self._folder = folder
        shutil.copytree(bundled_folder("examples", with_file="quickstart/cluster.yaml") / "quickstart", folder / _QUOTAS)
        self.server = ("--bootstrap-server", sandbox.bootstrap_servers)

    def traffic(self, seconds: float) -> TrafficReport:
        """Three producers and a consumer, each a user of its own; returns what the greedy one did.

        A busy machine may send too little for any limit to matter: then they send again, now to a broker that is warm.
        """
        _heading(f"2. Three teams produce and one consumes, for {seconds:.0f} s, without any quota")
        create_topic(self._sandbox.bootstrap_servers, TOPIC, partitions=3)
        for repeats_left in reversed(range(_RUNS)):
            reports = self._send_and_read(seconds)
            for team, report in reports.items():
                verb = "read" if team is READER else "wrote"
                _say(f"  {team.user:<10} {verb:<5} {report.record_bytes / MEBIBYTE:6.1f} MiB  ({_rate(report)})")
            if reports[GREEDY].bytes_per_second >= GREEDY.rate * _ENOUGH or not repeats_left:
                break
            _say(f"This machine is busy: {GREEDY.user} meant to write {GREEDY.rate / MEBIBYTE:.2f} MiB/s. They send again:")
        return reports[GREEDY]

    def _send_and_read(self, seconds: float) -> dict[Team, TrafficReport]:
        """All teams at the same time."""
        stop = threading.Event()
        with ThreadPoolExecutor(max_workers=len(TEAMS) + 1) as pool:
            try:
                running = {team: pool.submit(self._run_client, team, seconds, stop) for team in (*TEAMS, READER)}
                return {team: future.result() for team, future in running.items()}
            finally:
                stop.set()

    def _run_client(self, team: Team, seconds: float, stop: threading.Event) -> TrafficReport:
        servers = self._sandbox.sasl_bootstrap_servers or ""
        login = self._sandbox.user(team.user)
        if team is READER:
            return consume_all(servers, TOPIC, client_id=team.client_id, seconds=seconds, login=login, stop=stop)
        return produce_steadily(
            servers, TOPIC, client_id=team.client_id, bytes_per_second=team.rate, seconds=seconds, login=login, stop=stop
        )

    def review(self) -> None:
        """Show the files of a pull request, and what CI shows the reviewer: validation, plan, backtest."""
        _heading(f"3. A pull request proposes quotas, in {_QUOTAS}")
        for path in sorted((self._folder / _QUOTAS).rglob("*.yaml")):
            rows = [row for row in path.read_text("utf-8").splitlines() if not row.startswith("# yaml-language-server")]
            _say(f"{path.relative_to(self._folder)}:")
            output.print_lines([*(line((f"    {row}", Style.FAINT)) for row in rows), line()])
        _heading("4. Review: are the files sound, and what would they change on this cluster?")
        self.run("validate", _QUOTAS)
        self.run("plan", _QUOTAS, *self.server)
        _heading("5. Review: which clients would these quotas have throttled? Spark replays the broker's own request log")
        self.run("export", *self.server, "--snapshot", _SNAPSHOT)
        (self._folder / "broker-1.log").symlink_to(self._sandbox.nodes[0].request_log_file or "")
        _say("A log of this size needs no Spark. --master asks for it, so that you see what judges a large one:")
        traffic = ("--traffic", "1=broker-1.log")
        self.run("backtest", _QUOTAS, "--exact", "--current", _SNAPSHOT, "--master", "local[2]", *traffic)

    def apply(self) -> None:
        """A guard refuses; accepted by name, the change is written and read back."""
        _heading("6. Apply: the default user changes, so a guard asks first")
        self.run("apply", _QUOTAS, *self.server, "--auto-approve", "--quiet", expect=3)
        _say("An operator who knows the effect accepts this guard by its name:")
        self.run("apply", _QUOTAS, *self.server, "--auto-approve", "--quiet", "--accept", "default-entity")
        _say("Kafka's own tool sees the same:")
        tail = [*self.server, "--describe", "--entity-type", "users"]
        _command(shlex.join(["kafka-configs.sh", *tail]))
        runtime = runtime_for(self._sandbox.kafka_version)
        main = config_command_class(self._sandbox.kafka_version)
        java = [str(runtime.java), "-XX:TieredStopAtLevel=1", "-cp", runtime.class_path, main]
        subprocess.run([*java, *tail], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def throttled(self, before: TrafficReport) -> None:
        """The greedy team again, now under its quota."""
        _heading(f"7. {GREEDY.user} sends again: does the broker really throttle now?")
        after = self._run_client(GREEDY, _AFTERWARDS_S, threading.Event())
        _say(f"  before: {_rate(before)}, longest throttle {before.throttle_ms_max:.0f} ms")
        _say(f"  after:  {_rate(after)}, longest throttle {after.throttle_ms_max:.0f} ms")
        if before.throttle_ms_max > 0 or after.throttle_ms_max <= 0:
            raise DemoError(f"{GREEDY.user} was expected to be throttled after the quota was applied, and not before")

    def run(self, *arguments: str, expect: int = 0) -> None:
        """Show a command and run it, with its output on the screen."""
        _command(shlex.join(["kafka-quotas", *arguments]))
        command = [sys.executable, "-P", "-m", "reconciler", *arguments]
        environ = module_environment()
        code = subprocess.run(command, cwd=self._folder, env=environ, stdin=subprocess.DEVNULL, check=False).returncode
        if code != expect:
            raise DemoError(f"kafka-quotas {arguments[0]} ended with exit code {code}, not {expect}")
        if code:
            _say(f"(exit code {code})")


def _rate(report: TrafficReport) -> str:
    return f"{report.bytes_per_second / MEBIBYTE:.2f} MiB/s"
