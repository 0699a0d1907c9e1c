"""The certificates of an encrypted connection and when they end."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass


class CertificateOwner(enum.StrEnum):
    """Whose certificate it is."""

    CLIENT = "client"
    AUTHORITY = "authority"
    """One that the client trusts."""
    SERVER = "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """``name``: the server's address, else the subject, which is text of strangers."""

    owner: CertificateOwner
    name: str
    ends: datetime.datetime
