"""Where kafka-quotas was installed from, by the files that installers leave."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest

from reconciler.features.starting.installation import Installation, installed_from

COMMIT = "0123456789" * 4
GITHUB = Installation(repository="acme/kafka-quotas", commit=COMMIT)
OF_GIT = {"vcs": "git", "commit_id": COMMIT}


def distribution(folder: Path, content: str | None) -> metadata.Distribution:
    info = folder / "kafka_quota_reconciler-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: kafka-quota-reconciler\nVersion: 0.1.0\n", encoding="utf-8")
    if content is not None:
        (info / "direct_url.json").write_text(content, encoding="utf-8")
    return metadata.Distribution.at(info)


@pytest.mark.parametrize(
    ("recorded", "installation"),
    [
        ({"url": "https://github.com/acme/kafka-quotas.git", "vcs_info": OF_GIT}, GITHUB),
        ({"url": "https://github.com/acme/kafka-quotas", "vcs_info": OF_GIT}, GITHUB),
        ({"url": "ssh://git@github.com/acme/kafka-quotas.git", "vcs_info": OF_GIT}, GITHUB),
        ({"url": "https://git.example/acme/kafka-quotas.git", "vcs_info": OF_GIT}, Installation()),
        ({"url": "https://github.com.example/acme/kafka-quotas", "vcs_info": OF_GIT}, Installation()),
        ({"url": "https://github.com/acme/kafka-quotas", "vcs_info": {"vcs": "git", "commit_id": "main"}}, Installation()),
        ({"url": "file:///src/kafka-quotas", "dir_info": {"editable": True}}, Installation(folder="/src/kafka-quotas")),
        ({"url": "file:///dist/kafka_quota_reconciler.whl", "archive_info": {}}, Installation()),
        ([], Installation()),
    ],
)
def test_the_record_of_the_installer_is_read(tmp_path: Path, recorded: object, installation: Installation) -> None:
    assert installed_from(distribution(tmp_path, json.dumps(recorded))) == installation


@pytest.mark.parametrize("content", [None, "", "{"])
def test_without_a_record_nothing_is_known(tmp_path: Path, content: str | None) -> None:
    assert installed_from(distribution(tmp_path, content)) == Installation()
