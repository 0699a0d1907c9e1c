"""A private key for Python's ``ssl``, which takes one from a file only, without leaving a secret on the disk.

The key is sealed with a passphrase that exists in this process alone, and its file (0600) lives for one call: whatever happens to
the file, it is no secret.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedKeyPair:
    """A certificate chain (the first is one's own) and its private key, sealed; all PEM."""

    chain: bytes = field(repr=False)
    sealed_key: bytes = field(repr=False)
    passphrase: str = field(repr=False)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Make the context present it. Raises ``ssl.SSLError`` when key and certificate do not belong together."""
        descriptor, name = tempfile.mkstemp(prefix="kafka-quotas-", suffix=".pem")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(self.chain + self.sealed_key)
            context.load_cert_chain(name, password=self.passphrase)
        finally:
            Path(name).unlink(missing_ok=True)
