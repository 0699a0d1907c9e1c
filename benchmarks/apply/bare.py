"""The least that Python can do with the same files, one step after the other, and nothing else: no comparison, no report.

Compose the YAML, describe, validate only, write, describe again. The requests are as large as ours, and are written and read by
the same code, which is the fastest that we know; alterations are made from bare numbers.

``python -m benchmarks.apply.bare SERVER FOLDER``
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import yaml

from reconciler.backends.broker.cluster import BrokerCluster
from reconciler.backends.broker.settings import ConnectionSettings, parse_servers
from reconciler.model.change import Alteration
from reconciler.model.entity import Entity
from reconciler.ports import EntityFilter

_ENTITIES_A_REQUEST = 2_500
_MIB = 1024**2


def main(server: str, folder: str) -> None:
    gc.disable()
    alterations: list[Alteration] = []
    for file in sorted(Path(folder).glob("team-*.yaml")):
        with file.open("rb") as stream:
            root = yaml.compose(stream, Loader=yaml.CSafeLoader)
        assert isinstance(root, yaml.MappingNode)
        entries = root.value[-1][1].value[0][1].value
        alterations += [_alteration(entry) for entry in entries]
    cluster = BrokerCluster.open(ConnectionSettings(servers=parse_servers((server,))))
    cluster.describe(EntityFilter())
    for validate_only in (True, False):
        for start in range(0, len(alterations), _ENTITIES_A_REQUEST):
            cluster.alter(alterations[start : start + _ENTITIES_A_REQUEST], validate_only=validate_only)
    print(len(cluster.describe(EntityFilter())))
    cluster.close()


def _alteration(entry: yaml.MappingNode) -> Alteration:
    """``match: {user: NAME}`` and ``quotas: {KEY: nMiB}``, in the form in which this benchmark writes them."""
    (_, match), (_, quotas) = entry.value
    user = match.value[0][1].value
    ops = {key.value: float(int(value.value.removesuffix("MiB")) * _MIB) for key, value in quotas.value}
    return Alteration(entity=Entity(parts=(("user", user),)), ops=ops)


if __name__ == "__main__":
    main(*sys.argv[1:])
