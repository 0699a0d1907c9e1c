"""constraints.txt pins everything that set-up installs, at versions that pyproject.toml allows."""

import tomllib
from importlib import metadata
from pathlib import Path

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


def declared() -> list[Requirement]:
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    return [Requirement(text) for texts in lists for text in texts]


def everything_installed() -> set[str]:
    """Names of all that the declared requirements bring on this interpreter."""
    names: set[str] = set()
    waiting = declared()
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
    assert everything_installed() - set(PINS) == set()
