"""A real MIT KDC on loopback (Debian: krb5-kdc, krb5-admin-server, krb5-user): a realm, its principals, keytabs and tickets."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.features.sandbox.configuration import LOOPBACK, free_ports
from tests.support.polling import wait_until

REALM = "TEST.EXAMPLE"
MODULE = "com.sun.security.auth.module.Krb5LoginModule"
_PASSWORD = "s3cr3t-horse-of-kerberos"


@dataclass(kw_only=True)
class Kdc:
    """The realm in ``folder``; ``environment`` is what a program needs to be in it."""

    folder: Path
    port: int
    _process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def krb5_conf(self) -> Path:
        return self.folder / "krb5.conf"

    @property
    def environment(self) -> dict[str, str]:
        return {"KRB5_CONFIG": str(self.krb5_conf), "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf")}

    @property
    def java_option(self) -> str:
        """What makes a Java program a member of the realm."""
        return f"-Djava.security.krb5.conf={self.krb5_conf}"

    def keytab(self, *principals: str) -> Path:
        """Make the principals, with random keys, and write these to a file."""
        path = self.folder / f"{principals[0].replace('/', '-')}.keytab"
        for principal in principals:
            self._admin(f"addprinc -randkey {principal}@{REALM}", f"ktadd -k {path} {principal}@{REALM}")
        return path

    def ticket(self, keytab: Path, principal: str, *, cache: Path, seconds: int = 3600) -> None:
        """Get a ticket into a cache, as kinit does for people."""
        arguments = ["-k", "-t", str(keytab), "-c", f"FILE:{cache}", "-l", f"{seconds}s", f"{principal}@{REALM}"]
        self._run("kinit", *arguments)

    def renew_key(self, principal: str) -> None:
        """Give the principal another key, which its keytab has not."""
        self._admin(f"cpw -randkey {principal}@{REALM}")

    def start(self) -> None:
        """Start the KDC and wait until it answers."""
        program = _program("krb5kdc")
        with (self.folder / "kdc.out").open("ab") as output:
            self._process = subprocess.Popen(
                [program, "-n"], env={**os.environ, **self.environment}, stdout=output, stderr=subprocess.STDOUT
            )
        wait_until(lambda: "commencing operation" in self._log())

    def stop(self) -> None:
        """End it; its port refuses connections then."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            (self.folder / "kdc.log").unlink(missing_ok=True)

    def _log(self) -> str:
        path = self.folder / "kdc.log"
        return path.read_text() if path.exists() else ""

    def make(self) -> None:
        """Write the configuration and the empty database."""
        self.krb5_conf.write_text(_KRB5_CONF.format(realm=REALM, host=LOOPBACK, port=self.port))
        (self.folder / "kdc.conf").write_text(_KDC_CONF.format(realm=REALM, host=LOOPBACK, port=self.port, folder=self.folder))
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", _PASSWORD)

    def _admin(self, *queries: str) -> None:
        for query in queries:
            self._run("kadmin.local", "-r", REALM, "-q", query)

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [_program(name), *arguments],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def _program(name: str) -> str:
    path = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    assert path, f"{name} is not installed: apt install krb5-kdc krb5-admin-server krb5-user"
    return path


@contextmanager
def running_kdc(folder: Path) -> Iterator[Kdc]:
    """A realm with a KDC that is up; ended with the block."""
    [port] = free_ports(1)
    kdc = Kdc(folder=folder, port=port)
    kdc.make()
    try:
        kdc.start()
        yield kdc
    finally:
        kdc.stop()


@contextmanager
def in_realm(kdc: Kdc, **more: str) -> Iterator[None]:
    """This process is in the realm, too."""
    before = {name: os.environ.get(name) for name in (*kdc.environment, *more)}
    os.environ.update({**kdc.environment, **more})
    try:
        yield
    finally:
        _restore(before)


def _restore(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def server_module(keytab: Path, principal: str) -> str:
    """The JAAS line of a server."""
    return f'{MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}@{REALM}";'


_KRB5_CONF = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = {host}:{port}
  }}
[domain_realm]
  {host} = {realm}
  localhost = {realm}
"""

_KDC_CONF = """\
[kdcdefaults]
  kdc_listen = {host}:{port}
  kdc_tcp_listen = {host}:{port}
[realms]
  {realm} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/kadm5.acl
    max_life = 1h
    supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
  }}
[logging]
  kdc = FILE:{folder}/kdc.log
"""
