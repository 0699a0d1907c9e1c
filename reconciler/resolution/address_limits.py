"""Connection limits of addresses in the form in which limits of clients are asked: a bucket, and what limits it."""

from __future__ import annotations

from reconciler.model import EntityType
from reconciler.resolution.addresses import AddressTable, canonical_address
from reconciler.resolution.levels import Bucket, QuotaTable, Resolved


class AddressLimits:
    """A broker counts connections by address: its own limit, else that of the default address, one bucket for each address.

    Where two spellings of an address have different limits, the one that was applied last holds; that is not known, so the lower
    one is taken. What is set for a host name is about no address that is known here.
    """

    def __init__(self, quotas: QuotaTable) -> None:
        self._table = AddressTable(quotas)

    def resolve(self, _user: str, address: str, /) -> Resolved:
        """``address`` stands where a client has its client id, whose user plays no part."""
        answer = self._table.resolve(address)
        bucket = Bucket(user="", client_id="", other=((EntityType.IP.value, canonical_address(address)),))
        if answer.unclear:
            lower, *others = sorted(answer.unclear, key=lambda one: one.value)
            return Resolved(bucket=bucket, winner=lower, overridden=tuple(others))
        return Resolved(bucket=bucket, winner=answer.found[0] if answer.found else None, overridden=answer.found[1:])
