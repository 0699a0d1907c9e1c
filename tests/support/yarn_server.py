"""A real YARN on loopback: the resource manager and one node manager of Apache Hadoop, beside a real HDFS."""

from __future__ import annotations

import contextlib
import json
import os
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyspark

from reconciler.features.sandbox import process
from reconciler.features.sandbox.configuration import LOOPBACK, free_ports
from reconciler.features.sandbox.jars import Artifact, JarSet, ensure_jars
from reconciler.features.sandbox.process import guarding
from reconciler.java import find_java
from tests.support.hdfs_server import HadoopStore, hdfs_server, write_settings
from tests.support.polling import wait_until

_CIPHERS: Final = tuple(
    Artifact(group="org.bouncycastle", name=f"{name}-jdk18on", version="1.82", sha256=sha256)
    for name, sha256 in (
        ("bcprov", "14cde2fdfaa8890480a8e5b67aceef0c90f96682c1e23c133bafdc9e0b3255ce"),
        ("bcpkix", "bdc723e20834832ac6af136cb5b5ff05e43b71d4fa151cc6510d9212ee086e63"),
        ("bcutil", "4420691958ad1c0ba275a6d6d8a6317adbdbdc9277055b6a72aa89c88cda8c7d"),
    )
)
"""The resource manager makes a certificate with them. The jar of all servers leaves them out; the versions are Hadoop's."""
_PACKAGE: Final = "org.apache.hadoop.yarn.server"
_READY_S: Final = 240
_GRACE_S: Final = 20.0
"""For the node manager to end its containers."""
_ADDRESSES: Final = (
    "resourcemanager.address",
    "resourcemanager.scheduler.address",
    "resourcemanager.resource-tracker.address",
    "resourcemanager.admin.address",
    "resourcemanager.webapp.address",
    "nodemanager.address",
    "nodemanager.localizer.address",
    "nodemanager.webapp.address",
)
_SMALL: Final = {
    "yarn.nodemanager.resource.memory-mb": "8192",
    "yarn.nodemanager.resource.cpu-vcores": "8",
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.nodemanager.disk-health-checker.enable": "false",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
}
"""More memory and cores than a small machine has: containers start at once, also on a disk that is almost full."""
_QUEUES: Final = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class YarnServer:
    """``settings``: the folder for ``HADOOP_CONF_DIR``. ``containers``: where containers work, each in a folder of its own."""

    hdfs: HadoopStore
    settings: Path
    containers: Path
    logs: Path
    page: str

    def applications(self) -> dict[str, dict[str, Any]]:
        """What the resource manager knows of each application, by its id."""
        apps = _answer(f"{self.page}/ws/v1/cluster/apps")["apps"]
        return {app["id"]: app for app in (apps or {"app": []})["app"]}

    def containers_of(self, application: str) -> list[Path]:
        """The folder of ``stdout`` and ``stderr`` of each container that an application had."""
        return sorted((self.logs / application).iterdir())

    def outputs(self, application: str, name: str) -> list[str]:
        """The texts that its containers wrote to ``stdout`` or ``stderr``, without those that are empty."""
        texts = (file.read_text("utf-8") for container in self.containers_of(application) for file in container.glob(name))
        return [text for text in texts if text]


@contextmanager
def yarn_server(folder: Path) -> Iterator[YarnServer]:
    """One node for containers, with data in ``folder``. When the block ends, the servers and all containers have ended."""
    java = find_java()
    wanted = JarSet(name="Bouncy Castle", key="bouncy-castle-1.82", artifacts=_CIPHERS)
    ciphers = ensure_jars(wanted)
    work = folder / "yarn"
    work.mkdir()
    ports = dict(zip(_ADDRESSES, free_ports(len(_ADDRESSES)), strict=True))
    with hdfs_server(folder) as hdfs:
        write_settings(folder / "yarn-site.xml", _site(ports, work, java))
        write_settings(folder / "capacity-scheduler.xml", _QUEUES)
        command = (*hdfs.command[:-1], os.pathsep.join([hdfs.command[-1], *map(str, ciphers)]))
        yarn = YarnServer(
            hdfs=hdfs,
            settings=folder,
            containers=work / "local",
            logs=work / "logs",
            page=f"http://{LOOPBACK}:{ports['resourcemanager.webapp.address']}",
        )
        with guarding(work) as guard:
            started: list[process.ProcessRef] = []
            try:
                for server in ("resourcemanager.ResourceManager", "nodemanager.NodeManager"):
                    started.append(process.spawn((*command, f"{_PACKAGE}.{server}"), output=work / "servers.log"))
                    guard.watch(started[-1])
                wait_until(lambda: _runs_a_node(yarn), within_s=_READY_S)
                yield yarn
            finally:
                process.end(started[1:], grace_s=_GRACE_S)
                process.end(started[:1], grace_s=1.0)
                process.end(_processes_below(yarn.containers), grace_s=1.0)


def yarn_environment(yarn: YarnServer, environment: Mapping[str, str]) -> dict[str, str]:
    """An environment of ``spark_environment`` for this YARN. Containers read Spark's jars where they are, with no upload."""
    jars = Path(pyspark.__file__).parent / "jars"
    settings = {
        "spark.yarn.jars": f"local:{jars}/*",
        "spark.yarn.am.memory": "512m",
        "spark.executor.instances": "2",
        "spark.executor.memory": "1g",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": LOOPBACK,
        "spark.executorEnv.SPARK_LOCAL_IP": LOOPBACK,
    }
    with (Path(environment["SPARK_CONF_DIR"]) / "spark-defaults.conf").open("a", encoding="utf-8") as defaults:
        defaults.writelines(f"{key} {value}\n" for key, value in settings.items())
    return {**environment, "HADOOP_CONF_DIR": str(yarn.settings), "YARN_CONF_DIR": str(yarn.settings)}


def _site(ports: Mapping[str, int], work: Path, java: Path) -> dict[str, str]:
    addresses = {f"yarn.{name}": f"{LOOPBACK}:{port}" for name, port in ports.items()}
    folders = {"yarn.nodemanager.local-dirs": str(work / "local"), "yarn.nodemanager.log-dirs": str(work / "logs")}
    home = java.resolve().parent.parent
    return addresses | folders | _SMALL | {"yarn.nodemanager.admin-env": f"JAVA_HOME={home}"}


def _runs_a_node(yarn: YarnServer) -> bool:
    # The pages answer before the scheduler does, and refuse connections before that.
    with contextlib.suppress(OSError, json.JSONDecodeError):
        nodes = _answer(f"{yarn.page}/ws/v1/cluster/nodes")["nodes"]
        return [node["state"] for node in (nodes or {}).get("node", ())] == ["RUNNING"]
    return False


def _answer(address: str) -> dict[str, Any]:
    with urllib.request.urlopen(address, timeout=30) as answer:
        document: dict[str, Any] = json.load(answer)
    return document


def _processes_below(folder: Path) -> list[process.ProcessRef]:
    """Those that work in a folder of a container."""
    found: list[process.ProcessRef] = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "cwd").readlink().is_relative_to(folder):
                mark = process.start_mark(int(entry.name))
                found.extend([process.ProcessRef(pid=int(entry.name), mark=mark)] if mark else ())
    return found
