"""constraints.txt pins all that set-up installs, as pyproject.toml allows; requirements/ has its hashes, for pipelines."""

import re
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = {
    canonicalize_name(name): Version(version)
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
    for name, version in [line.split("==")]
}


SET_UP = re.search(r"^extras=(\S+)$", (ROOT / "tools" / "setup.sh").read_text(encoding="utf-8"), re.MULTILINE)


def declared(extras: Iterable[str] = PROJECT["optional-dependencies"]) -> list[Requirement]:
    lists = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][extra] for extra in extras)]
    return [Requirement(text) for texts in lists for text in texts]


def needed_by(requirements: list[Requirement]) -> set[str]:
    """Names of all that requirements bring on this interpreter."""
    names: set[str] = set()
    waiting = list(requirements)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        extras = requirement.extras or {""}
        if name in names or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        names.add(name)
        for text in metadata.distribution(name).requires or []:
            needed = Requirement(text)
            if not needed.marker or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(Requirement(text.split(";")[0]))
    return names


def test_every_pin_is_in_its_declared_range():
    assert declared()
    assert [str(one) for one in declared() if PINS[canonicalize_name(one.name)] not in one.specifier] == []


def test_everything_that_set_up_brings_is_pinned():
    assert SET_UP is not None
    assert needed_by(declared(SET_UP[1].split(","))) - set(PINS) == set()


LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
LOCKED = re.compile(
    r"(?P<name>[a-z0-9-]+)==(?P<version>[\w.]+)(?P<marker> ; [^\\]+)?(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n"
)
BUILDS = {"hatchling", "setuptools"}
"""What builds the wheels of the packages that have none, and ours."""


def locked(path: Path) -> dict[str, Version]:
    """Name and version of each entry; a lock of which one character is nothing of that kind is none."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith("#"))
    entries = list(LOCKED.finditer(text))
    assert "".join(entry[0] for entry in entries) == text
    return {entry["name"]: Version(entry["version"]) for entry in entries}


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_entry_of_a_lock_has_hashes_no_address_and_the_version_of_its_pin(path: Path) -> None:
    assert locked(path)
    assert {
        name: version for name, version in locked(path).items() if PINS.get(canonicalize_name(name), version) != version
    } == {}
    assert path.name == "release.txt" or set(locked(path)) - set(PINS) <= BUILDS


@pytest.mark.parametrize(
    ("name", "extras"),
    [
        ("image.txt", ["github", "msk", "service"]),
        ("pipeline.txt", ["github"]),
        ("pipeline-traffic.txt", ["github", "traffic"]),
        ("pipeline-spark.txt", ["github", "traffic", "spark"]),
    ],
)
def test_a_lock_has_all_that_the_tool_needs_in_its_place_and_nothing_else(name: str, extras: list[str]) -> None:
    wanted = needed_by(declared(extras))

    # typing-extensions and others are needed by some versions of Python only.
    only_elsewhere = set(locked(ROOT / "requirements" / name)) - wanted
    assert wanted <= set(locked(ROOT / "requirements" / name))
    assert only_elsewhere <= {"typing-extensions", "tzdata", "colorama"}
