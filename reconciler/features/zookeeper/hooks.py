"""Clusters whose quotas are in ZooKeeper."""

from __future__ import annotations

from typing import Final

ZOOKEEPER: Final = ("reconciler.features.zookeeper.cluster:ZooKeeperCluster",)
