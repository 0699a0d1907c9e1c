"""Completion, as a real bash does it."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import environment, run

COMPLETE = """
source {script}
COMP_LINE={line}
COMP_POINT=${{#COMP_LINE}}
COMP_TYPE=9
_python_argcomplete kafka-quotas
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bash")
    done = run("tool", "completion", "bash", cwd=folder)
    assert (done.code, done.err) == (0, "")
    path = folder / "kafka-quotas.bash"
    path.write_text(done.out, encoding="utf-8")
    return path


def completed(script: Path, *words: str) -> list[str]:
    """What a real bash offers for the last of these words, in a folder with the script and a snapshot."""
    text = COMPLETE.format(script=shlex.quote(str(script)), line=shlex.quote(" ".join(words)))
    bash = shutil.which("bash")
    assert bash
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        [bash, "--norc", "-e", "-c", text],
        cwd=script.parent,
        env=environment({"PATH": path}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_their_options_and_arguments(bash_script: Path) -> None:
    assert {"run", "demo"} <= set(completed(bash_script, "kafka-quotas", "sandbox", ""))
    assert completed(bash_script, "kafka-quotas", "describe", "--str") == ["--strict"]
    assert completed(bash_script, "kafka-quotas", "tool", "schema", "Cl") == ["ClientQuotas", "Cluster"]
