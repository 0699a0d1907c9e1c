"""Servers and programs that several tests look at the product through."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.chromium import Chromium, chromium
from tests.support.hdfs_server import HadoopStore, hdfs_server
from tests.support.s3_server import S3Server, s3_server


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HadoopStore]:
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as started:
        yield started
