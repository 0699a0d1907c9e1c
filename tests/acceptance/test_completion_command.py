"""Completion, as a real bash does it; the other shells' scripts by their rules, and by the shells where they are installed."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from reconciler.cli.completion_scripts import SCRIPTS
from reconciler.cli.completion_words import word_tree
from reconciler.cli.main import COMMANDS
from reconciler.workflows.resolve_sources import WORDS
from tests.support.command import run

TREE = word_tree()
COMPLETE = """
source {script}
COMP_WORDS=({words})
COMP_CWORD=$(({count} - 1))
_kafka_quotas
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bash")
    done = run("completion", "bash", cwd=folder)
    assert (done.code, done.err) == (0, "")
    path = folder / "kafka-quotas.bash"
    path.write_text(done.out, encoding="utf-8")
    return path


def completed(script: Path, *words: str) -> list[str]:
    """What a real bash offers for the last of these words."""
    text = COMPLETE.format(script=shlex.quote(str(script)), words=shlex.join(words), count=len(words))
    bash = shutil.which("bash")
    assert bash
    done = subprocess.run([bash, "--norc", "-eu", "-c", text], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands(bash_script: Path) -> None:
    assert completed(bash_script, "kafka-quotas", "") == list(COMMANDS)
    assert completed(bash_script, "kafka-quotas", "va") == ["validate"]
    assert completed(bash_script, "kafka-quotas", "--ver") == ["--version"]


def test_bash_completes_options_of_the_command(bash_script: Path) -> None:
    assert completed(bash_script, "kafka-quotas", "plan", "--detailed") == ["--detailed-exitcode"]
    assert "--auto-approve" in completed(bash_script, "kafka-quotas", "apply", "teams", "--")
    assert "--auto-approve" not in completed(bash_script, "kafka-quotas", "plan", "--")


def test_bash_completes_the_choices_of_an_option(bash_script: Path) -> None:
    assert completed(bash_script, "kafka-quotas", "validate", "--fail-on", "") == ["error", "warning", "info"]
    assert completed(bash_script, "kafka-quotas", "validate", "--fail-on", "=", "w") == ["warning"]
    assert completed(bash_script, "kafka-quotas", "validate", "--fail-on", "=") == ["error", "warning", "info"]


def test_bash_completes_entity_types_and_quota_keys(bash_script: Path) -> None:
    assert completed(bash_script, "kafka-quotas", "describe", "--any", "") == ["user", "client-id", "ip"]
    assert completed(bash_script, "kafka-quotas", "alter", "--delete", "producer") == ["producer_byte_rate"]
    assert "--strict" in completed(bash_script, "kafka-quotas", "describe", "--")
    assert "--strict" not in completed(bash_script, "kafka-quotas", "alter", "--")


def test_bash_completes_the_states_that_resolve_asks(bash_script: Path) -> None:
    assert completed(bash_script, "kafka-quotas", "resolve", "--diff", "") == list(WORDS)
    assert completed(bash_script, "kafka-quotas", "resolve", "--state", "pl") == ["planned"]
    assert "--include-overrides" in completed(bash_script, "kafka-quotas", "resolve", "--")


def test_bash_completes_commands_below_commands_and_arguments(bash_script: Path) -> None:
    assert {"start", "stop", "status", "run"} <= set(completed(bash_script, "kafka-quotas", "sandbox", ""))
    assert "--nodes" in completed(bash_script, "kafka-quotas", "sandbox", "start", "--no")
    assert completed(bash_script, "kafka-quotas", "completion", "f") == ["fish"]
    assert completed(bash_script, "kafka-quotas", "schema", "Cl") == ["ClientQuotas", "Cluster"]


def test_bash_leaves_paths_to_file_names(bash_script: Path) -> None:
    assert completed(bash_script, "kafka-quotas", "validate", "te") == []
    assert completed(bash_script, "kafka-quotas", "plan", "--current", "sn") == []
    assert re.search(r"^complete .*-o default.* kafka-quotas$", bash_script.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("shell", SCRIPTS)
def test_every_command_and_option_is_in_the_script(shell: str) -> None:
    script = SCRIPTS[shell](TREE)

    words = set(re.split(r"[\s'\"():|]+", script))
    for command in TREE.walk():
        assert set(command.path) <= words
        for flag in (flag for option in command.options for flag in option.flags):
            assert (flag.lstrip("-") if shell == "fish" else flag) in words


@pytest.mark.parametrize(("shell", "check"), [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")])
def test_the_shell_itself_accepts_the_script(shell: str, check: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    script = tmp_path / "script"
    script.write_text(SCRIPTS[shell](TREE), encoding="utf-8")
    if program is None:
        # Not installed: at least its quotes are balanced, which is what a summary could break.
        assert all(len(re.sub(r"\\'|'\\''", "", line).split("'")) % 2 for line in script.read_text().splitlines())
        return

    done = subprocess.run([program, check, str(script)], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_another_shell_is_a_usage_error(tmp_path: Path) -> None:
    done = run("completion", "tcsh", cwd=tmp_path)

    assert (done.code, done.out) == (64, "")


@pytest.mark.parametrize(("kind", "name"), [("ClientQuotas", "client-quotas"), ("plan", "plan")])
def test_a_schema_is_printed_as_it_is_shipped(tmp_path: Path, kind: str, name: str) -> None:
    shipped = Path(__file__).parents[2] / "schemas" / f"{name}.v1.schema.json"

    done = run("schema", kind, cwd=tmp_path)

    assert (done.code, done.out) == (0, shipped.read_text(encoding="utf-8"))


def test_an_unknown_kind_is_a_usage_error_that_lists_the_kinds(tmp_path: Path) -> None:
    done = run("schema", "Quota", cwd=tmp_path)

    assert done.code == 64
    assert "ClientQuotas" in done.err
