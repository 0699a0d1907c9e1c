"""What a command loads before it starts to work: the reason why --help and validate are quick."""

import json
import re
import subprocess
import sys

import pytest

from reconciler.cli.registry import commands
from tests.support.manifests import PLAIN_QUOTAS, snapshot

HEAVY = {"pyspark", "py4j", "numpy", "pandas", "pyarrow", "msgspec", "kazoo", "kafka", "deepdiff", "argcomplete", "urllib3"}
PROGRAM = """
import json, sys
from reconciler.cli.main import main
for arguments in json.loads(sys.argv[1]):
    try:
        code = main(arguments)
    except SystemExit as leaving:
        code = leaving.code
    sys.stderr.write("\\n" + json.dumps({"code": code, "modules": sorted(sys.modules)}))
"""


def loaded_by(*arguments: str) -> set[str]:
    """The modules in memory after one command that ends with exit code 0."""
    return loaded_by_each(arguments)[0]


def loaded_by_each(*commands: tuple[str, ...]) -> list[set[str]]:
    """The modules in memory after each of these commands, which run one after another in one process."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(commands)], capture_output=True, text=True, check=True)
    outcomes = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert [outcome["code"] for outcome in outcomes] == [0] * len(commands), done.stderr
    return [set(outcome["modules"]) for outcome in outcomes]


@pytest.fixture
def manifest(tmp_path):
    path = tmp_path / "payments.yaml"
    path.write_text(PLAIN_QUOTAS, encoding="utf-8")
    return path


def test_help_loads_nothing_of_ours_but_the_entry_point():
    of_features = re.compile(r"reconciler\.features(\.\w+)?$")
    ours = {name for name in loaded_by("--help") if name.split(".")[0] == "reconciler" and not of_features.match(name)}

    assert ours <= {
        *("reconciler", "reconciler.cli", "reconciler.cli.main", "reconciler.cli.exit_codes", "reconciler.errors"),
        *("reconciler.faces", "reconciler.cli.declaration", "reconciler.cli.parser", "reconciler.cli.registry"),
        *("reconciler.hooks",),
        *("reconciler.render", "reconciler.render.sink"),
    }


def test_help_loads_no_library():
    assert loaded_by("--help") & (HEAVY | {"yaml", "jsonschema", "jsonschema_rs", "javaproperties"}) == set()


def test_help_of_a_command_loads_no_heavy_library():
    loaded = loaded_by_each(*((name, "--help") for name in commands()))

    assert [(name, modules & HEAVY) for name, modules in zip(commands(), loaded, strict=True) if modules & HEAVY] == []


@pytest.mark.parametrize("form", ["text", "json"])
def test_describe_without_manifests_loads_nothing_that_reads_them(tmp_path, form):
    (tmp_path / "now.json").write_text(snapshot({}), encoding="utf-8")
    loaded = loaded_by("describe", "--current", str(tmp_path / "now.json"), "--format", form)

    # A snapshot is read through its schema, so jsonschema_rs is there.
    assert loaded & (HEAVY | {"yaml", "jsonschema", "reconciler.manifest"}) == set()


@pytest.mark.parametrize("form", ["text", "json"])
def test_validate_loads_no_heavy_library(manifest, form):
    assert loaded_by("validate", "--format", form, str(manifest)) & HEAVY == set()
