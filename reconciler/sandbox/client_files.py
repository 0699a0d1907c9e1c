"""A ``client.properties`` file for every user, for this tool's and Kafka's own ``--command-config``."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from reconciler.sandbox.java_text import plain_login_module, properties_text
from reconciler.sandbox.login import Login

PATTERN: Final = "client-*.properties"
"""A glob for the files in a sandbox's folder."""

_LONGEST: Final = 100


def path(folder: Path, login: Login) -> Path:
    """Where the user's file is; what a file name cannot hold is percent-encoded, what is too long for one is hashed."""
    name = quote(login.name, safe="")
    if len(name) > _LONGEST:
        name = hashlib.sha256(login.name.encode()).hexdigest()[:16]
    return folder / f"client-{name}.properties"


def write(folder: Path, logins: Sequence[Login]) -> None:
    """Writes the files, readable by their owner only."""
    for login in logins:
        settings = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": plain_login_module(login),
        }
        descriptor = os.open(path(folder, login), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(properties_text(settings))
