"""The check of ``doctor`` for certificates that have expired or will soon."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Final

from reconciler.features.insight.doctor.checks import CheckAnswer, CheckStatus, passed, skipped
from reconciler.model import Certificate, CertificateOwner, display_name
from reconciler.text import list_some

_SOON: Final = datetime.timedelta(days=30)
_SHOWN: Final = 3
_REMEDIES: Final = {
    CertificateOwner.CLIENT: "Renew the certificate of the key store (ssl.keystore.location)",
    CertificateOwner.AUTHORITY: "Add the next certificate of the authority to the trust store (ssl.truststore.location)",
    CertificateOwner.SERVER: "Ask the operators of the cluster to renew the server's certificate",
}


def check_certificates(certificates: Sequence[Certificate], now: datetime.datetime) -> CheckAnswer:
    """Fails when a certificate that the connection needs has expired, and warns 30 days before.

    Of several authorities in a trust store, one that is valid is enough.
    """
    ordered = sorted(certificates, key=lambda certificate: certificate.ends)
    if not ordered:
        return skipped("No certificate was seen.")
    expired = [certificate for certificate in ordered if certificate.ends <= now]
    soon = [certificate for certificate in ordered if now < certificate.ends <= now + _SOON]
    if not expired and not soon:
        message = f"{len(ordered)} seen. The first to expire: {_text(ordered[0])}."
        return passed(message)
    parts = [f"Expired: {_texts(expired)}."] if expired else []
    parts += [f"Within {_SOON.days} days expires: {_texts(soon)}."] if soon else []
    status = CheckStatus.FAIL if _blocks(expired, ordered) else CheckStatus.WARN
    owners = sorted({certificate.owner for certificate in (*expired, *soon)}, key=list(_REMEDIES).index)
    remedy = ". ".join(_REMEDIES[owner] for owner in owners)
    return CheckAnswer(status, " ".join(parts), remedy)


def _blocks(expired: Sequence[Certificate], every: Sequence[Certificate]) -> bool:
    authorities = [certificate for certificate in every if certificate.owner is CertificateOwner.AUTHORITY]
    needed = [certificate for certificate in expired if certificate.owner is not CertificateOwner.AUTHORITY]
    return bool(needed) or (bool(authorities) and all(certificate in expired for certificate in authorities))


def _texts(certificates: Sequence[Certificate]) -> str:
    return list_some([_text(certificate) for certificate in certificates], _SHOWN)


def _text(certificate: Certificate) -> str:
    return f"{certificate.owner.value} {display_name(certificate.name)} on {certificate.ends:%Y-%m-%d}"
