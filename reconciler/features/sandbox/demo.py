"""The demonstration: the whole road on a real Kafka, each step a command that a user could type."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import reconciler
from reconciler.errors import ReconcilerError
from reconciler.features.sandbox import (
    Login,
    Sandbox,
    SandboxSpec,
    TrafficReport,
    consume_all,
    create_topic,
    produce_steadily,
    running,
    runtime_for,
)
from reconciler.features.sandbox.configuration import config_command_class
from reconciler.files import bundled_folder
from reconciler.ports import Progress

KIBIBYTE: Final = 1024
MEBIBYTE: Final = 1024 * KIBIBYTE
TOPIC: Final = "events"
_QUOTAS: Final = "quotas"
_SNAPSHOT: Final = "current.json"
# Large records, so that a slow machine too sends more than the limits allow.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """Where the demo talks: headings, sentences, quoted files and outputs, and the command lines it runs."""

    heading: Callable[[str], None]
    say: Callable[[str], None]
    quote: Callable[[str], None]
    command: Callable[[str], None]


def run_demo(screen: Screen, *, seconds: float, progress: Progress) -> None:
    """Run every step; ``seconds`` is how long the teams send.

    Leaves no process and no folder behind, also when interrupted. Raises ``DemoError`` when a step does not end as it must, and
    ``MissingDependencyError`` without what its backtest needs.
    """
    from reconciler.traffic import require_packages

    require_packages()  # the fifth step, a minute later, is a backtest
    logins = tuple(Login(name=team.user, password=f"{team.user}-secret") for team in (*TEAMS, READER))
    screen.heading("1. A real Kafka broker, with its request log on")
    with (
        tempfile.TemporaryDirectory(prefix="kafka-quotas-demo-") as folder,
        running(SandboxSpec(users=logins, request_log=True), progress=progress) as sandbox,
    ):
        screen.say(f"Kafka {sandbox.kafka_version} (KRaft) listens on {sandbox.bootstrap_servers}. It has no quota at all yet.")
        demo = _Demo(screen, sandbox, Path(folder))
        before = demo.traffic(seconds)
        demo.proposal()
        demo.review()
        demo.apply()
        demo.throttled(before)
        demo.nothing_left_to_do()
        screen.heading("9. Stopping the broker")
    screen.say("Done. The demo leaves no process and no folder behind. Next, write manifests of your own cluster:")
    screen.say("  kafka-quotas init quotas --ci none --bootstrap-server HOST:PORT")
    screen.say("For the same steps at your own pace, read: kafka-quotas explain tutorial")


class _Demo:
    def __init__(self, screen: Screen, sandbox: Sandbox, folder: Path) -> None:
        self._screen = screen
        self._sandbox = sandbox
        # The commands name files beside them, as those of a user do.
        self._folder = folder
        shutil.copytree(bundled_folder("examples", with_file="quickstart/cluster.yaml") / "quickstart", folder / _QUOTAS)
        self._server = ("--bootstrap-server", sandbox.bootstrap_servers)

    def traffic(self, seconds: float) -> TrafficReport:
        """Three producers and a consumer, each a user of its own; returns what the greedy one did.

        A busy machine may send too little for any limit to matter: then they send again, now to a broker that is warm.
        """
        self._screen.heading(f"2. Three teams produce and one consumes, for {seconds:.0f} s, without any quota")
        create_topic(self._sandbox.bootstrap_servers, TOPIC, partitions=3)
        for repeats_left in reversed(range(_RUNS)):
            reports = self._send_and_read(seconds)
            for report, verb in zip(reports, ["wrote", "wrote", "wrote", "read"], strict=True):
                self._screen.say(f"  {report.user:<10} {verb:<5} {report.record_bytes / MEBIBYTE:6.1f} MiB  ({_rate(report)})")
            greedy = reports[TEAMS.index(GREEDY)]
            if greedy.bytes_per_second >= GREEDY.rate * _ENOUGH or not repeats_left:
                break
            self._screen.say(
                f"This machine is busy: {GREEDY.user} meant to write {GREEDY.rate / MEBIBYTE:.2f} MiB/s. They send again:"
            )
        return greedy

    def _send_and_read(self, seconds: float) -> list[TrafficReport]:
        """All teams at the same time; the consumer's report comes last."""
        stop = threading.Event()
        with ThreadPoolExecutor(max_workers=len(TEAMS) + 1) as pool:
            try:
                sending = [pool.submit(self._produce, team, seconds, stop) for team in TEAMS]
                reading = pool.submit(self._consume, seconds, stop)
                return [future.result() for future in (*sending, reading)]
            finally:
                stop.set()

    def proposal(self) -> None:
        """The files of a pull request."""
        self._screen.heading(f"3. A pull request proposes quotas, in {_QUOTAS}")
        for path in sorted((self._folder / _QUOTAS).rglob("*.yaml")):
            text = path.read_text(encoding="utf-8")
            self._screen.say(f"{path.relative_to(self._folder)}:")
            self._screen.quote(
                "".join(f"{line}\n" for line in text.splitlines() if not line.startswith("# yaml-language-server"))
            )

    def review(self) -> None:
        """Show what CI shows the reviewer: validation, plan, backtest."""
        self._screen.heading("4. Review: are the files sound, and what would they change on this cluster?")
        self._run("validate", _QUOTAS)
        self._run("plan", _QUOTAS, *self._server)
        self._screen.heading(
            "5. Review: which clients would these quotas have throttled? Spark replays the broker's own request log"
        )
        self._run("export", *self._server, "--snapshot", _SNAPSHOT)
        traffic = []
        for node in self._sandbox.nodes:
            if node.request_log_file:
                (self._folder / f"broker-{node.id}.log").symlink_to(node.request_log_file)
                traffic += ["--traffic", f"{node.id}=broker-{node.id}.log"]
        self._screen.say("A log of this size needs no Spark. --master asks for it, so that you see what judges a large one:")
        self._run("backtest", _QUOTAS, "--exact", "--current", _SNAPSHOT, "--master", "local[2]", *traffic)

    def apply(self) -> None:
        """A guard refuses; accepted by name, the change is written and read back."""
        self._screen.heading("6. Apply: the default user changes, so a guard asks first")
        self._run("apply", _QUOTAS, *self._server, "--auto-approve", "--quiet", expect=3)
        self._screen.say("An operator who knows the effect accepts this guard by its name:")
        self._run("apply", _QUOTAS, *self._server, "--auto-approve", "--quiet", "--accept", "default-entity")
        self._screen.say("Kafka's own tool sees the same:")
        self._kafka_configs()

    def throttled(self, before: TrafficReport) -> None:
        """The greedy team again, now under its quota."""
        self._screen.heading(f"7. {GREEDY.user} sends again: does the broker really throttle now?")
        after = self._produce(GREEDY, _AFTERWARDS_S, threading.Event())
        self._screen.say(f"  before: {_rate(before)}, longest throttle {before.throttle_ms_max:.0f} ms")
        self._screen.say(f"  after:  {_rate(after)}, longest throttle {after.throttle_ms_max:.0f} ms")
        if before.throttle_ms_max > 0 or after.throttle_ms_max <= 0:
            msg = f"{GREEDY.user} was expected to be throttled after the quota was applied, and not before"
            raise DemoError(msg)

    def nothing_left_to_do(self) -> None:
        """The second plan is empty."""
        self._screen.heading("8. A second plan finds nothing to do")
        self._run("plan", _QUOTAS, *self._server, "--detailed-exitcode")

    def _produce(self, team: Team, seconds: float, stop: threading.Event) -> TrafficReport:
        return produce_steadily(
            self._sasl,
            TOPIC,
            client_id=team.client_id,
            bytes_per_second=team.rate,
            seconds=seconds,
            login=self._sandbox.user(team.user),
            stop=stop,
        )

    def _consume(self, seconds: float, stop: threading.Event) -> TrafficReport:
        login = self._sandbox.user(READER.user)
        return consume_all(self._sasl, TOPIC, client_id=READER.client_id, seconds=seconds, login=login, stop=stop)

    @property
    def _sasl(self) -> str:
        return self._sandbox.sasl_bootstrap_servers or self._sandbox.bootstrap_servers

    def _run(self, *arguments: str, expect: int = 0) -> None:
        """Show a command and run it, with its output on the screen."""
        self._screen.command(shlex.join(["kafka-quotas", *arguments]))
        # A module of the user's directory must not take this package's place.
        roots = [str(Path(reconciler.__file__).resolve().parent.parent), os.environ.get("PYTHONPATH", "")]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(root for root in roots if root)}
        command = [sys.executable, "-P", "-m", "reconciler", *arguments]
        code = subprocess.run(command, cwd=self._folder, env=environ, stdin=subprocess.DEVNULL, check=False).returncode
        if code != expect:
            msg = f"kafka-quotas {arguments[0]} ended with exit code {code}, not {expect}"
            raise DemoError(msg)
        if code:
            self._screen.say(f"(exit code {code})")

    def _kafka_configs(self) -> None:
        runtime = runtime_for(self._sandbox.kafka_version)
        tail = [*self._server, "--describe", "--entity-type", "users"]
        self._screen.command(shlex.join(["kafka-configs.sh", *tail]))
        classpath = ":".join(str(jar) for jar in runtime.jars)
        java = [str(runtime.java), "-XX:TieredStopAtLevel=1", "-cp", classpath]
        main = config_command_class(self._sandbox.kafka_version)
        subprocess.run([*java, main, *tail], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _rate(report: TrafficReport) -> str:
    return f"{report.bytes_per_second / MEBIBYTE:.2f} MiB/s"
