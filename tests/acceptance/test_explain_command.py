"""Every id has its reason, and every example does what it says: the wrong one produces the id, the right one does not."""

import re
from pathlib import Path

import pytest

import reconciler
from reconciler.model import ManifestCommit
from reconciler.model.drift import DriftClass
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.finding import Example, Explanation, Topic
from reconciler.model.plan import GuardStatus
from reconciler.policy.guards import GUARDS
from reconciler.workflows.explain import explanations, page_names
from reconciler.workflows.intent import load_intent, validate_manifests
from reconciler.workflows.plan import plan_from
from tests.builders import current
from tests.fakes import FakeClock
from tests.support.command import invoke, run_script

ROOT = Path(__file__).parents[2]
PACKAGE = Path(reconciler.__file__).parent
ALL = explanations()


def live_state(lines: tuple[str, ...]):
    entities: dict[Entity, dict[str, float]] = {}
    for line in lines:
        pairs = [word.split("=", 1) for word in line.split(" ")]
        names = {k: DEFAULT if v == "<default>" else v for k, v in pairs if "_" not in k}
        entities[Entity.of(names)] = {k: float(v) for k, v in pairs if "_" in k}
    return current(entities)


def ids_of(example: Example, text: str, folder: Path) -> set[str]:
    """Ids of all findings, and of all guards that trip, for one half of an example."""
    if example.commands:
        done = run_script(text, cwd=folder, shell=("sh",))
        return set(re.findall(r"\[([a-z0-9-]+)\]$", done.out, re.MULTILINE)) or {done.err}
    name = "kafka-quotas.yaml" if "kind: Repository" in text else "quotas.yaml"
    (folder / name).write_text(text, encoding="utf-8")
    if not example.live:
        return {one.id for one in validate_manifests([str(folder)]).findings}
    several = text.count("kind: Cluster\n") > 1
    intent = load_intent([str(folder)], cluster="prod" if several else None)
    state = live_state(example.live)
    plan = plan_from(intent, state, accepted=(), source=ManifestCommit(), clock=FakeClock())
    return {one.id for one in plan.findings} | {g.id for g in plan.guards if g.status is GuardStatus.NEEDS_ACCEPTANCE}


LARGE = {"too-many-findings"}
"""Its example has as many findings as test_bounded_input counts."""


@pytest.mark.parametrize(
    "one",
    [pytest.param(e, marks=[pytest.mark.large] if e.id in LARGE else []) for e in ALL.values() if e.example],
    ids=lambda one: one.id,
)
def test_the_wrong_example_produces_the_id_and_the_right_one_does_not(one: Explanation, tmp_path: Path) -> None:
    assert one.example is not None
    (tmp_path / "wrong").mkdir()
    (tmp_path / "right").mkdir()

    assert one.id in ids_of(one.example, one.example.bad, tmp_path / "wrong")
    assert one.id not in ids_of(one.example, one.example.good, tmp_path / "right")


def test_every_guard_and_every_class_of_drift_is_explained() -> None:
    assert {one.id for one in ALL.values() if one.topic is Topic.GUARD} == set(GUARDS)
    assert {one.id for one in ALL.values() if one.topic is Topic.DRIFT} == set(DriftClass)
    assert [one.id for one in ALL.values() if len(one.text) < 40] == []


def test_every_id_that_the_code_gives_a_finding_is_in_the_catalogue() -> None:
    functions = "finding|lint|_warning|add|note|_error|_lint|_rule|ValueRefusedError|UnreadableError"
    makers = re.compile(rf"""\b(?:{functions})\(\s*"([a-z-]+)\"""")
    yielded = re.compile(r"""yield "([a-z]+(?:-[a-z]+)+)", """)
    given = re.compile(r"""\bid="([a-z]+(?:-[a-z]+)+)\"""")
    named: dict[str, str] = {}
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        constants = dict(re.findall(r"""^([A-Z_]+): Final = "([a-z-]+)\"$""", text, re.MULTILINE))
        named |= {constants[name]: str(path) for name in re.findall(r"Finding\(\s*id=([A-Z_]+)\b", text) if name in constants}
        for pattern in (makers, yielded, given):
            named |= {found: str(path) for found in pattern.findall(text) if "-" in found}

    assert len(named) > 60
    assert {found: where for found, where in named.items() if found not in ALL} == {}


def test_one_id_prints_its_reason_and_an_example(tmp_path: Path) -> None:
    done = invoke("explain", "user-prefix", cwd=tmp_path)

    assert (done.code, done.err) == (0, "")
    assert "principal's name" in done.out
    assert done.out.index("Wrong:") < done.out.index("User:orders") < done.out.index("Right:")
    assert "lint: {user-prefix:" in done.out


def test_each_page_of_the_documentation_is_printed_by_its_name(tmp_path: Path) -> None:
    pages = {path.stem: path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")}
    assert pages.keys() == set(page_names())
    assert pages.keys().isdisjoint(ALL)
    listed = invoke("explain", cwd=tmp_path).out
    assert listed.partition("\nPages\n")[2].split() == sorted(pages)
    assert invoke("explain", "install", cwd=tmp_path).out == pages["install"]
