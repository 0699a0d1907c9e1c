"""The committed lists of jars."""

import re

import pytest

from reconciler.errors import UsageError
from reconciler.features.sandbox.jars import DEFAULT_KAFKA_VERSION, KAFKA_VERSIONS, ZOOKEEPER_VERSIONS, jar_set


@pytest.mark.parametrize("version", KAFKA_VERSIONS)
def test_every_pinned_version_has_a_broker_its_tools_and_a_log_binding(version: str) -> None:
    jars = jar_set(version)
    names = {artifact.name for artifact in jars.artifacts}
    assert {"kafka_2.13", "kafka-tools", "kafka-clients"} <= names
    assert names & {"log4j-slf4j-impl", "slf4j-reload4j"}
    assert {a.version for a in jars.artifacts if a.group == "org.apache.kafka"} == {version}


@pytest.mark.parametrize("version", KAFKA_VERSIONS)
def test_every_line_has_a_whole_sum_and_a_file_name_of_its_own(version: str) -> None:
    artifacts = jar_set(version).artifacts
    assert all(re.fullmatch("[0-9a-f]{64}", artifact.sha256) for artifact in artifacts)
    assert len({artifact.file_name for artifact in artifacts}) == len(artifacts)


@pytest.mark.parametrize("version", ZOOKEEPER_VERSIONS)
def test_the_old_lines_bring_zookeeper_and_its_server(version: str) -> None:
    assert {"zookeeper", "zookeeper-jute"} <= {artifact.name for artifact in jar_set(version).artifacts}


def test_two_versions_never_share_a_cache_folder() -> None:
    assert len({jar_set(version).key for version in KAFKA_VERSIONS}) == len(KAFKA_VERSIONS)


def test_another_version_is_a_usage_error_that_names_the_pinned_ones() -> None:
    with pytest.raises(UsageError, match=re.escape(DEFAULT_KAFKA_VERSION)):
        jar_set("2.8.0")
