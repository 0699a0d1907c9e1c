"""A real S3 endpoint on loopback (S3Proxy, whose buckets are folders), and what Spark needs to reach it: Hadoop's own S3A."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

from reconciler.features.sandbox import process
from reconciler.features.sandbox.configuration import LOOPBACK, free_ports
from reconciler.features.sandbox.jars import Artifact, JarSet, ensure_jars
from reconciler.features.sandbox.process import guarding
from reconciler.files import cache_folder
from reconciler.java import find_java
from tests.support.hdfs_server import HadoopStore, write_settings
from tests.support.polling import wait_until

_SERVER: Final = "org.gaul:s3proxy:4.1.0:jar:jar-with-dependencies"
_SERVER_SHA256: Final = "a4d025969aaf796616ed4b1e2491d87d455ce84bb28cb9db086b2e6aaa68b48d"
_CLIENT: Final = (
    Artifact(
        group="org.apache.hadoop",
        name="hadoop-aws",
        version="3.5.0",
        sha256="66bd9eefb938b1a1657487324b63c13df2d8b17164a1dd24e0ef37b905bc5baa",
    ),
    Artifact(
        group="software.amazon.awssdk",
        name="bundle",
        version="2.35.4",
        sha256="db4b55f24ad1b4e70f17eb1717a4de76a8dadc5a27d764be7c44ff67b2c1c677",
    ),
    Artifact(
        group="software.amazon.s3.analyticsaccelerator",
        name="analyticsaccelerator-s3",
        version="1.3.1",
        sha256="4959a9747cbb479c73c3ffbcd479bee5b014f8b2880994585a8693fb9d24675e",
    ),
)
"""Of the version of the Hadoop client that pyspark brings; 690 MB."""
_BUCKET: Final = "lake"
_NAME: Final = "reader"
_SECRET: Final = "a-secret-of-loopback"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Server(HadoopStore):
    """``address``: ``s3a://BUCKET``. ``properties``: the file for ``--properties-file``."""

    properties: Path
    secret: str

    @property
    def options(self) -> tuple[str, ...]:
        return ("--properties-file", str(self.properties))


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """An object store whose data is in ``folder``. When the block ends, its process has ended."""
    java = find_java()
    wanted = JarSet(name="Hadoop's S3A", key="hadoop-aws-3.5.0", artifacts=_CLIENT)
    client = os.pathsep.join(str(jar) for jar in ensure_jars(wanted))
    (port,) = free_ports(1)
    (folder / "data" / _BUCKET).mkdir(parents=True)
    server = folder / "s3proxy.properties"
    server.write_text(
        f"s3proxy.authorization=aws-v2-or-v4\ns3proxy.endpoint=http://{LOOPBACK}:{port}\ns3proxy.identity={_NAME}\n"
        f"s3proxy.credential={_SECRET}\njclouds.provider=filesystem-nio2\njclouds.filesystem.basedir={folder / 'data'}\n",
        "utf-8",
    )
    settings = {
        "fs.s3a.endpoint": f"http://{LOOPBACK}:{port}",
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": _NAME,
        "fs.s3a.secret.key": _SECRET,
        "fs.s3a.attempts.maximum": "2",
        "fs.s3a.retry.limit": "1",
    }
    write_settings(folder / "core-site.xml", settings)
    properties = folder / "spark.properties"
    lines = [f"spark.driver.extraClassPath={client}", *(f"spark.hadoop.{key}={value}" for key, value in settings.items())]
    properties.write_text("\n".join(lines) + "\n", "utf-8")
    jars = Path(pyspark.__file__).parent / "jars"
    command = (str(java), "-Xmx256m", "-cp", os.pathsep.join([str(folder), client, f"{jars}/*"]))
    with guarding(folder) as guard:
        run = (str(java), "-Xmx256m", "-jar", str(_server_jar()), "--properties", str(server))
        started = process.spawn(run, output=folder / "s3.log")
        guard.watch(started)
        try:
            wait_until(lambda: _answers(port))
            store = S3Server(address=f"s3a://{_BUCKET}", properties=properties, secret=_SECRET, command=command)
            store.shell("-mkdir", "-p", f"{store.address}/traffic")
            yield store
        finally:
            process.end([started], grace_s=1.0)


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1):
        return True
    return False


def _server_jar() -> Path:
    """The server with all that it needs in one jar, fetched by Maven, once."""
    folder = cache_folder() / "jars" / "s3proxy"
    jar = folder / "s3proxy-4.1.0-jar-with-dependencies.jar"
    if not jar.exists():
        copy = ["mvn", "-B", "-q", "dependency:copy", f"-Dartifact={_SERVER}", f"-DoutputDirectory={folder}"]
        subprocess.run(copy, check=True, capture_output=True, timeout=600)
    with jar.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == _SERVER_SHA256, f"{jar} is another file; delete it"
    return jar
