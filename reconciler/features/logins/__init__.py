"""Logins with Kerberos, OAUTHBEARER and AWS_MSK_IAM: tickets, tokens, IAM identities."""

from __future__ import annotations

from typing import Final

LOGINS: Final = ("reconciler.features.logins.kerberos:KINDS", "reconciler.features.logins.kinds:KINDS")
