"""Who may do what with new nodes: the same as with the nodes beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kazoo.exceptions import NoNodeError

from reconciler.backends.zookeeper.nodes import CONFIG
from reconciler.errors import AuthorizationError

if TYPE_CHECKING:
    from kazoo.client import KazooClient

_DEPTH: Final = CONFIG.count("/") + 2
_HIDDEN: Final = ":x"
"""What ZooKeeper shows in place of a digest to whoever may not administer the node."""


class Acls:
    """The ACLs of Kafka's folders of config nodes, each asked for once.

    Kafka gives a folder and everything in it the same ACL (``zookeeper.set.acl``), so that of the folder is that of all siblings,
    of those too that are not there yet.
    """

    def __init__(self, client: KazooClient) -> None:
        self._client = client
        self._of: dict[str, Sequence[Any] | None] = {}

    def acl_for(self, path: str) -> Sequence[Any] | None:
        """The ACL for a node to be made; ``None`` when its folder, and with it the whole kind of entity, is not there.

        Raises ``AuthorizationError`` when the ACL is not shown whole, and kazoo's errors.
        """
        folder = "/".join(path.split("/")[:_DEPTH])
        if folder not in self._of:
            try:
                acl = self._client.get_acls(folder)[0]
            except NoNodeError:
                return None
            _require_whole(folder, acl)
            self._of[folder] = acl
        return self._of[folder]


def _require_whole(folder: str, acl: Sequence[Any]) -> None:
    hidden = [one for one in acl if one.id.scheme == "digest" and one.id.id.endswith(_HIDDEN)]
    if hidden:
        msg = (
            f"ZooKeeper does not show this client the whole ACL of {folder}, so new nodes could not have the same; log in as "
            "somebody who may administer it, most often as the brokers do"
        )
        raise AuthorizationError(msg, operation="admin")
