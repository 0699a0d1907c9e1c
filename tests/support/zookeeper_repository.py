"""Manifests in a folder for a cluster that is reached through ZooKeeper, and the command run there."""

from __future__ import annotations

from pathlib import Path

from reconciler.features.sandbox.spec import Sandbox
from tests.support import zookeeper_tree
from tests.support.command import Done, run


class ZooKeeperRepository:
    """One Cluster manifest called ``old``, and quotas."""

    def __init__(self, folder: Path, sandbox: Sandbox, *lines: str) -> None:
        self.folder = folder
        self.zookeeper = sandbox.zookeeper or ""
        head = "apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {name: old}\nspec:\n"
        settings = ("prune: never", f'connection: {{zookeeper: "{self.zookeeper}"}}', *lines)
        (folder / "cluster.yaml").write_text(head + "".join(f"  {line}\n" for line in settings), encoding="utf-8")

    def declare(self, *entries: tuple[str, str]) -> None:
        """Exactly these, each the texts of ``match`` and ``quotas``."""
        text = "".join(f"    - match: {match}\n      quotas: {quotas}\n" for match, quotas in entries)
        head = "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nmetadata: {name: t}\nspec:\n  quotas:\n"
        (self.folder / "quotas.yaml").write_text(head + text, encoding="utf-8")

    def run(self, *arguments: str) -> Done:
        """The command, in the folder."""
        return run(*arguments, cwd=self.folder)

    def nodes(self) -> dict[str, bytes]:
        """Every entity's node, as bare kazoo sees it."""
        with zookeeper_tree.zookeeper_client(self.zookeeper) as client:
            return {p: d for root in zookeeper_tree.ENTITIES for p, d in zookeeper_tree.nodes_below(client, root).items()}

    def put(self, path: str, data: bytes) -> None:
        """Write a node as somebody else would, with the notification."""
        with zookeeper_tree.zookeeper_client(self.zookeeper) as client:
            client.ensure_path(path)
            client.set(path, data)
            zookeeper_tree.notify(client, path)
