"""The benchmark of ``apply`` still runs: every program does what it is timed for, and each has its line."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from benchmarks.apply.comparison import compare
from benchmarks.apply.programs import BARE, BARE_OWN, OURS, java_program
from benchmarks.apply.scenes import write_wanted
from reconciler.features.sandbox.spec import Sandbox

pytestmark = pytest.mark.kafka


@pytest.mark.large
@pytest.mark.parametrize("scene", ["from empty", "1 % changed", "nothing to do"])
def test_every_program_brings_a_small_cluster_to_what_is_wanted(scene, clean_kafka: Sandbox, tmp_path: Path, capsys):
    rivals = [BARE, BARE_OWN] if scene == "from empty" else []
    java = java_program(tmp_path) if scene == "from empty" else None
    programs = [OURS, *rivals, *([java] if java is not None else [])]
    wanted = write_wanted(tmp_path, entities=20)
    result = compare(lambda: nullcontext(clean_kafka.bootstrap_servers), wanted, programs, scene=scene, times=1)
    assert set(result) == {program.name for program in programs}
    assert all(run.wall > 0 and run.cpu > 0 for run in result.values())
    printed = capsys.readouterr().out
    assert f"20 entities x 2 keys, {scene}" in printed
    assert all(program.name in printed for program in programs)
