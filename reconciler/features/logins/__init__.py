"""Logins with OAUTHBEARER and AWS_MSK_IAM: tokens in files and of endpoints, and IAM identities."""

from __future__ import annotations

from typing import Final

LOGINS: Final = ("reconciler.features.logins.kinds:KINDS",)
