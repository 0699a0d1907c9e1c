"""A standalone cluster of Spark from pyspark's own package: one master and two workers.

Their Python workers find every installed package, but not this project: its code has to come with the session.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import sysconfig
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyspark

from reconciler.features.sandbox.configuration import free_ports
from tests.support.polling import wait_until

SPARK_BIN = Path(pyspark.__file__).parent / "bin"
_READY_S = 120


def stranger_python(folder: Path) -> Path:
    """An interpreter without this project: no ``.pth`` file is read, so an editable install does not count."""
    program = folder / "python"
    site = sysconfig.get_path("purelib")
    program.write_text(f'#!/bin/sh\nPYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}{site}" exec {sys.executable} -S "$@"\n')
    program.chmod(0o755)
    return program


BRIEF_JAVA = "-XX:TieredStopAtLevel=1"
"""For what runs for seconds: Java compiles once, which is most of what it would do."""


def spark_environment(folder: Path) -> dict[str, str]:
    """For servers and for clients: whose Python works, where temporary files go, and that Java need not warm up."""
    python = str(stranger_python(folder))
    settings = folder / "conf"
    settings.mkdir(exist_ok=True)
    (settings / "spark-defaults.conf").write_text(f"spark.executor.extraJavaOptions {BRIEF_JAVA}\n", encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "SPARK_HOME"}}
    return {
        **kept,
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_CONF_DIR": str(settings),
        "SPARK_DAEMON_JAVA_OPTS": BRIEF_JAVA,
        "SPARK_SUBMIT_OPTS": BRIEF_JAVA,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextlib.contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """One master, two workers of one core; the address of the master."""
    port, page = free_ports(2)
    at = f"spark://127.0.0.1:{port}"
    master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page))
    with contextlib.ExitStack() as stack:
        stack.enter_context(_running(master, folder, "master"))
        wait_until(lambda: _answers(port), within_s=_READY_S)
        for number in (1, 2):
            work = ("-d", str(folder / f"work-{number}"), "--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "1g")
            stack.enter_context(_running(("org.apache.spark.deploy.worker.Worker", *work, at), folder, f"worker-{number}"))
        wait_until(lambda: _workers(page) == 2, within_s=_READY_S)
        yield at


def executors_below(folder: Path) -> list[int]:
    """The processes of executors that work below this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            is_executor = entry.name.isdigit() and b"CoarseGrainedExecutorBackend" in (entry / "cmdline").read_bytes()
            # On YARN, the shell that waits for the executor has its command line, too.
            is_java = is_executor and (entry / "exe").readlink().name == "java"
            if is_java and (entry / "cwd").readlink().is_relative_to(folder):
                found.append(int(entry.name))
    return found


@contextlib.contextmanager
def _running(arguments: Sequence[str], folder: Path, name: str) -> Iterator[None]:
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(SPARK_BIN / "spark-class"), *arguments],
            env=spark_environment(folder),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(300)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
        return True
    return False


def _workers(page: int) -> int:
    # Spark's server answers every path with its start page until the path of the JSON is added.
    with (
        contextlib.suppress(OSError, json.JSONDecodeError),
        urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer,
    ):
        return int(json.load(answer)["aliveworkers"])
    return 0
