"""Who may do what with new nodes: the same as with the nodes beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kazoo.exceptions import NoNodeError

from reconciler.backends.zookeeper.nodes import CONFIG

if TYPE_CHECKING:
    from kazoo.client import KazooClient

_DEPTH: Final = CONFIG.count("/") + 2


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

        Raises kazoo's errors.
        """
        folder = "/".join(path.split("/")[:_DEPTH])
        if folder not in self._of:
            try:
                self._of[folder] = self._client.get_acls(folder)[0]
            except NoNodeError:
                return None
        return self._of[folder]
