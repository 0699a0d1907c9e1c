"""Values of manifests edited in place: nothing but the values changes, however a file is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.yaml import ScalarEdit, ScalarEditError, YamlMapping, YamlScalar, edit_scalars, expand_scalars, read_yaml

VALUES = st.sampled_from(["10MiB", "1", "12.5%", "200KB/s", "1e6"])
QUOTES = st.sampled_from(["", '"', "'"])
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
ENTRY = st.tuples(
    st.sampled_from(["plain", "flow", "anchor", "explicit"]), VALUES, QUOTES, st.sampled_from(["", "  # 10MiB", " #1"])
)


def entry(number: int, form: str, value: str, quote: str, comment: str) -> str:
    written = f"{quote}{value}{quote}"
    match form:
        case "flow":
            return f"k{number}: {{a: {written}, b: [10MiB, 1]}}{comment}"
        case "anchor":
            return f"k{number}: {{a: &x{number}  {written}, b: 1}}{comment}"
        case "explicit":
            return f"? k{number}\n: {{'a' : {written} }}{comment}"
    return f"k{number}:\n  # before\n  a:   {written}{comment}\n  \u00e9: 10MiB"


def places(content: bytes) -> list[YamlScalar]:
    stream = read_yaml(content)
    assert not stream.problems
    found = []
    for document in stream.documents:
        assert isinstance(document, YamlMapping)
        for value in document.items.values():
            assert isinstance(value, YamlMapping)
            scalar = value.items["a"]
            assert isinstance(scalar, YamlScalar)
            found.append(scalar)
    return found


@given(st.lists(ENTRY, min_size=1, max_size=6), ENDS, st.booleans(), st.data())
def test_only_the_values_change(entries: list[tuple[str, str, str, str]], end: str, bom: bool, data: st.DataObject) -> None:
    text = "\n".join(["# 10MiB", *(entry(number, *each) for number, each in enumerate(entries)), "---", "last: {a: 1}", ""])
    content = ("\ufeff" * bom + text.replace("\n", end)).encode()
    scalars = places(content)
    new = data.draw(st.lists(st.none() | VALUES, min_size=len(scalars), max_size=len(scalars)))
    edits = [
        ScalarEdit(line=scalar.line, column=scalar.column, old=scalar.text, new=text)
        for scalar, text in zip(scalars, new, strict=True)
        if text is not None
    ]
    edited = edit_scalars(content, edits) if edits else content
    assert [scalar.text for scalar in places(edited)] == [
        scalar.text if text is None else text for scalar, text in zip(scalars, new, strict=True)
    ]
    back = [
        ScalarEdit(line=now.line, column=now.column, old=now.text, new=was.text)
        for was, now in zip(scalars, places(edited), strict=True)
    ]
    assert edit_scalars(edited, back) == content


@pytest.mark.parametrize(
    ("text", "old", "line", "column"),
    [
        ("a: 10MiB\n", "1MiB", 1, 4),
        ("a: 10MiB\n", "10Mi", 1, 4),
        ("a: 10MiB\n", "10MiB", 2, 4),
        ("a: 10MiB\n", "10MiB", 9, 4),
        ('a: "10\\x4diB"\n', "10MiB", 1, 4),
        ("a: |-\n  10MiB\n", "10MiB", 1, 4),
        ("a: 10\n  MiB\n", "10 MiB", 1, 4),
    ],
    ids=["another value", "a part of it", "another line", "no such line", "an escape", "a block", "two lines"],
)
def test_a_value_that_cannot_be_replaced_is_refused(text: str, old: str, line: int, column: int) -> None:
    with pytest.raises(ScalarEditError):
        edit_scalars(text.encode(), [ScalarEdit(line=line, column=column, old=old, new="5MiB")])


def test_a_text_that_would_change_more_than_the_value_is_refused() -> None:
    with pytest.raises(ScalarEditError):
        edit_scalars(b"{a: 1, b: 2}\n", [ScalarEdit(line=1, column=5, old="1", new="3, c: 4")])


def test_one_place_is_edited_once() -> None:
    edit = ScalarEdit(line=1, column=4, old="1", new="2")
    with pytest.raises(ScalarEditError):
        edit_scalars(b"a: 1\n", [edit, edit])


@given(st.lists(ENTRY, min_size=1, max_size=6), ENDS, st.data())
def test_a_scalar_becomes_a_mapping_and_everything_around_it_stays(
    entries: list[tuple[str, str, str, str]], end: str, data: st.DataObject
) -> None:
    entries = [(form if form != "anchor" else "plain", *rest) for form, *rest in entries]  # type: ignore[misc]  # of four parts
    text = "\n".join(entry(number, *each) for number, each in enumerate(entries)) + "\n"
    content = text.replace("\n", end).encode()
    scalar = data.draw(st.sampled_from(places(content)))
    new = "{value: 5MiB, until: 2026-12-01T18:00:00Z, then: 1}"
    edited = expand_scalars(content, [ScalarEdit(line=scalar.line, column=scalar.column, old=scalar.text, new=new)])

    quotes = [
        mark for mark in ("", '"', "'") if edited.replace(new.encode(), f"{mark}{scalar.text}{mark}".encode(), 1) == content
    ]
    assert len(quotes) == 1
    assert edited.count(new.encode()) == 1


def test_a_scalar_with_an_anchor_is_not_expanded() -> None:
    content = b"a: &x 10MiB\nb: 1\n"

    with pytest.raises(ScalarEditError):
        expand_scalars(content, [ScalarEdit(line=1, column=4, old="10MiB", new="{value: 5MiB}")])
