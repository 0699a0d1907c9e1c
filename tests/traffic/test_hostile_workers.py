"""A Spark Connect server whose workers return what their operator wants: nothing of it runs in the process that asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import all_kinds
from tests.support.command import run
from tests.support.manifests import quotas
from tests.support.spark_servers import connect_server, spark_environment

pytestmark = [pytest.mark.spark, pytest.mark.large, pytest.mark.xdist_group("spark-servers")]

POISON = '''
"""Python, but what our workers pack is a command."""
import importlib.abc, importlib.util, os, pickle, runpy, sys

class Runs:
    def __reduce__(self):
        return os.system, ("touch {marker}",)

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if not name.startswith("reconciler.traffic.shuffle."):
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        run = spec.loader.exec_module

        def execute(module):
            run(module)
            if hasattr(module, "TypedValues"):
                module.TypedValues.pack = lambda self, value: pickle.dumps(Runs())
            if hasattr(module, "pack"):
                module.pack = lambda value: pickle.dumps(Runs())

        spec.loader.exec_module = execute
        return spec

sys.meta_path.insert(0, Finder())
sys.argv = sys.argv[2:] if sys.argv[1] == "-m" else sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
'''
PATIENCE_S = 300


def test_what_workers_return_is_data(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    poison = tmp_path / "poison.py"
    poison.write_text(POISON.replace("{marker}", str(marker)), encoding="utf-8")
    (tmp_path / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "8KiB"})), encoding="utf-8")
    all_kinds.write(tmp_path / "traffic.parquet", all_kinds.rows())
    server = tmp_path / "server"
    server.mkdir()
    with connect_server(server, runs=poison) as address:
        done = run(
            "backtest", "quotas.yaml", "--traffic", "traffic.parquet", "--out", "parquet=rows", "--master", address,
            cwd=tmp_path, env=spark_environment(tmp_path), timeout=PATIENCE_S,
        )  # fmt: skip

    assert not marker.exists(), "a worker's bytes ran as code"
    assert done.code == 1, done.err
    assert "a worker of Spark returned bytes that are not a ReportParts" in done.err
    assert "Traceback" not in done.err
