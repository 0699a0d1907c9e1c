"""Logins with Kerberos, OAUTHBEARER and AWS_MSK_IAM: tickets, tokens, IAM identities. And Java's key stores."""

from __future__ import annotations

from typing import Final

LOGINS: Final = ("reconciler.features.logins.kerberos:KINDS", "reconciler.features.logins.kinds:KINDS")
KEY_STORES: Final = ("reconciler.features.logins.java_store:open_java_store",)
"""Each opens the content of a store: ``backends.security.certificates.KeyStore``, ``None`` for another kind."""
