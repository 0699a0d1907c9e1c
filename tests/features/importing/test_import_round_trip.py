"""Moving in loses nothing and adds nothing: what another tool's file declares is what the manifests then declare."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.features.importing.conversion import import_files
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.finding import Severity
from reconciler.model.quota import legal_keys
from reconciler.workflows.intent import validate_manifests
from reconciler.workflows.load import desired_for, load_manifests
from tests.support import foreign_quotas
from tests.support.hostile_names import HOSTILE

AWKWARD = [
    *(name for name in HOSTILE if name and name.encode("utf-8", "ignore").decode() == name),
    "on", "0123", "null", "~", "<default>", "default", "%40", " x ", "\u2028", "\u0085", "\x7f", "\ufeff", "'", '"',
    "o'brien", "${var.x}", "%{ if }", "{{ x }}", "$HOME", "`id`", "$(id)", "a are producer_byte_rate=1.0", "it's, client-id 'x'",
    "User:alice", "a\\", "{a,b}", "# c", "CN=a,OU=b", "true", "1e6",
]  # fmt: skip
NAMES = st.sampled_from(AWKWARD) | st.text(st.characters(exclude_categories=["Cs", "Co", "Cn"]), min_size=1, max_size=20)
ADDRESSES = st.ip_addresses().map(str)
VALUES = {
    "long": st.integers(1, 2**53).map(float) | st.sampled_from([10485760.0, 1500.0, 1e16, 2.0**63]),
    "int": st.integers(1, 2**31 - 1).map(float),
    "double": st.floats(1e-300, 1e300) | st.integers(1, 1000).map(float),
}
TOOLS = {
    "jikkou": ("jikkou", "q.yaml", foreign_quotas.jikkou, foreign_quotas.jikkou_has),
    "strimzi": ("strimzi", "q.yaml", foreign_quotas.strimzi, foreign_quotas.strimzi_has),
    "terraform": ("terraform", "q.tfstate", foreign_quotas.terraform_state, lambda *_: True),
}
"""For each form: the tool, a file name, what writes it, and whether it can say an entity with these quotas."""


def named_or_default(names):
    return st.just(DEFAULT) | names


ENTITIES = st.one_of(
    st.builds(lambda u: Entity.of({"user": u}), named_or_default(NAMES)),
    st.builds(lambda c: Entity.of({"client-id": c}), named_or_default(NAMES)),
    st.builds(lambda u, c: Entity.of({"user": u, "client-id": c}), named_or_default(NAMES), named_or_default(NAMES)),
    st.builds(lambda i: Entity.of({"ip": i}), named_or_default(ADDRESSES)),
)


@st.composite
def entity_with_quotas(draw):
    entity = draw(ENTITIES)
    keys = draw(st.lists(st.sampled_from(legal_keys(entity.types)), min_size=1, unique=True))
    return entity, {key.value: draw(VALUES[key.value_type.value]) for key in keys}


STATES = st.lists(entity_with_quotas(), min_size=1, max_size=6).map(dict)


def declared_by(folder):
    loaded = load_manifests([str(folder)])
    _, state, _ = desired_for(loaded, None)
    return state.values()


@pytest.mark.parametrize("form", TOOLS)
@given(state=STATES)
@example(state={Entity.of({"user": "it's, client-id 'x'"}): {"producer_byte_rate": 1.0}})
@settings(deadline=None, max_examples=40)
def test_the_manifests_of_an_import_declare_what_the_file_did(form, state):
    tool, name, write, has = TOOLS[form]
    said = {entity: quotas for entity, quotas in state.items() if has(entity, quotas)}
    with tempfile.TemporaryDirectory() as place:
        source, folder = Path(place) / name, Path(place) / "quotas"
        source.write_text(write(said), encoding="utf-8", newline="")
        result = import_files(tool, [str(source)], folder=folder)

        errors = [one for one in result.findings if one.severity is Severity.ERROR]
        assert bool(errors) != bool(said)
        assert result.entities == len(said)
        assert result.written == bool(said)
        if said:
            assert declared_by(folder) == said
            assert [one for one in validate_manifests([str(folder)]).findings if one.severity is Severity.ERROR] == []


@pytest.mark.parametrize("form", TOOLS)
@given(state=STATES, cut=st.integers(0, 400))
@settings(deadline=None, max_examples=40)
def test_a_file_that_is_cut_off_never_declares_anything_else(form, state, cut):
    tool, name, write, has = TOOLS[form]
    said = {entity: quotas for entity, quotas in state.items() if has(entity, quotas)}
    with tempfile.TemporaryDirectory() as place:
        source, folder = Path(place) / name, Path(place) / "quotas"
        source.write_text(write(said)[:cut], encoding="utf-8", newline="")
        result = import_files(tool, [str(source)], folder=folder, partial=True)
        declared = declared_by(folder) if result.written else {}

    # The last entity may have lost keys or digits; a cut text cannot say that it is one.
    assert len(declared.keys() - said.keys()) <= 1
    assert sum(declared[entity] != said[entity] for entity in declared.keys() & said.keys()) <= 1
