"""A real HDFS on loopback: one name node and one data node of Apache Hadoop, each a process of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import pyspark

from reconciler.features.sandbox import process
from reconciler.features.sandbox.configuration import LOOPBACK, free_ports
from reconciler.features.sandbox.jars import Artifact, JarSet, ensure_jars
from reconciler.features.sandbox.process import guarding
from reconciler.java import find_java
from tests.support.polling import wait_until

_SERVERS: Final = Artifact(
    group="org.apache.hadoop",
    name="hadoop-client-minicluster",
    version="3.5.0",
    sha256="06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c",
)
"""Of the version of the client that pyspark brings."""
_PACKAGE: Final = "org.apache.hadoop.hdfs"


@dataclass(frozen=True, slots=True, kw_only=True)
class HadoopStore:
    """Files at ``address`` (``SCHEME://PLACE``), reached by Hadoop's own shell."""

    address: str
    command: tuple[str, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """The options with which Spark reaches it."""
        return ()

    def put(self, local: Path, remote: str) -> None:
        """Copy a file or a folder into it."""
        self.shell("-put", str(local), f"{self.address}{remote}")

    def get(self, remote: str, local: Path) -> None:
        """Copy a file or a folder from there."""
        self.shell("-get", f"{self.address}{remote}", str(local))

    def shell(self, *arguments: str) -> None:
        """One command of the shell."""
        run = [*self.command, "org.apache.hadoop.fs.FsShell", *arguments]
        subprocess.run(run, check=True, capture_output=True, timeout=300)


@contextmanager
def hdfs_server(folder: Path) -> Iterator[HadoopStore]:
    """A file system whose data is in ``folder``. When the block ends, both processes have ended."""
    java = find_java()
    wanted = JarSet(name="Hadoop", key=f"hadoop-{_SERVERS.version}", artifacts=(_SERVERS,))
    (servers,) = ensure_jars(wanted)
    (port,) = free_ports(1)
    address = f"hdfs://{LOOPBACK}:{port}"
    write_settings(folder / "core-site.xml", {"fs.defaultFS": address, "hadoop.tmp.dir": str(folder / "data")})
    local = ("namenode.http-address", "datanode.address", "datanode.http.address", "datanode.ipc.address")
    write_settings(folder / "hdfs-site.xml", {"dfs.replication": "1"} | {f"dfs.{name}": f"{LOOPBACK}:0" for name in local})
    jars = Path(pyspark.__file__).parent / "jars"
    command = (str(java), "-Xmx256m", "-cp", os.pathsep.join([str(folder), str(servers), f"{jars}/*"]))
    name_node = (*command, f"{_PACKAGE}.server.namenode.NameNode")
    subprocess.run([*name_node, "-format", "-nonInteractive"], check=True, capture_output=True, timeout=300)
    with guarding(folder) as guard:
        started = []
        try:
            for server in (name_node, (*command, f"{_PACKAGE}.server.datanode.DataNode")):
                started.append(process.spawn(server, output=folder / "hdfs.log"))
                guard.watch(started[-1])
            hdfs = HadoopStore(address=address, command=command)
            wait_until(lambda: _writes(hdfs))
            yield hdfs
        finally:
            process.end(started, grace_s=1.0)


def _writes(hdfs: HadoopStore) -> bool:
    run = [*hdfs.command, "org.apache.hadoop.fs.FsShell", "-fs", hdfs.address, "-mkdir", "-p", "/traffic"]
    if subprocess.run(run, check=False, capture_output=True, timeout=300).returncode:
        return False
    run = [*hdfs.command, f"{_PACKAGE}.tools.DFSAdmin", "-fs", hdfs.address, "-report"]
    return b"Live datanodes (1)" in subprocess.run(run, check=False, capture_output=True, timeout=300).stdout


def write_settings(file: Path, settings: Mapping[str, str]) -> None:
    """A file of settings as Hadoop reads it."""
    rows = "".join(f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in settings.items())
    file.write_text(f"<configuration>{rows}</configuration>", "utf-8")
