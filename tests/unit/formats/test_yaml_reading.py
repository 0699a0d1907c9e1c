"""Reading YAML: text as written, places, and bounds that no file gets past."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.yaml import YamlMapping, YamlScalar, YamlSequence, read_yaml
from reconciler.yaml.reading import MAX_DEPTH


def only(text):
    stream = read_yaml(text.encode("utf-8") if isinstance(text, str) else text)
    assert stream.problems == ()
    (document,) = stream.documents
    return document


def problems(text):
    stream = read_yaml(text.encode("utf-8") if isinstance(text, str) else text)
    return [(p.id, p.line, p.column) for p in stream.problems]


@pytest.mark.parametrize(
    "text", ["on", "0123", "12:30", "1e6", "null", "~", "yes", "2026-01-02", "0x10", "1_000", ".nan", "=", "<<"]
)
def test_a_scalar_keeps_its_text_whatever_yaml_would_make_of_it(text):
    assert only(f"a: {text}\n").items["a"].text == text


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("on", "on"),
        ("true", True),
        ("~", None),
        ("", None),
        ("'null'", "null"),
        ("20", 20),
        ("0.5", 0.5),
        ("1e6", 1e6),
        ("20MiB", "20MiB"),
        ("1e999", "1e999"),
        ('"20"', "20"),
        ("!!str 20", "20"),
    ],
)
def test_plain_scalars_are_typed_for_the_schema_as_an_editor_types_them(text, data):
    found = only(f"a: {text}\n").data["a"]

    assert found == data
    assert type(found) is type(data)


def test_nodes_and_keys_have_places_that_count_from_one():
    root = only("# first\na:\n  - b\n  - c: d\n")

    assert isinstance(root, YamlMapping)
    assert (root.line, root.column) == (2, 1)
    assert root.keys == {"a": (2, 1)}
    sequence = root.items["a"]
    assert isinstance(sequence, YamlSequence)
    assert [(node.line, node.column) for node in sequence.items] == [(3, 5), (4, 5)]
    assert root.data == {"a": ["b", {"c": "d"}]}


@pytest.mark.parametrize("encode", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_byte_order_marks_and_line_endings_change_neither_content_nor_places(encode, newline):
    stream = read_yaml(newline.join(["a: é", "b:", "  c: x", ""]).encode(encode))

    assert stream.documents[0].data == {"a": "é", "b": {"c": "x"}}
    root = stream.documents[0]
    assert isinstance(root, YamlMapping)
    inner = root.items["b"]
    assert (inner.line, inner.column) == (3, 3)


def test_a_stream_has_its_documents_in_order_and_no_empty_ones():
    stream = read_yaml(b"---\na: 1\n---\n# nothing\n---\nb: 2\n")

    assert [document.data for document in stream.documents] == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a: \xff\n", ("invalid-utf8", 1, 4)),
        (b"\xff\xfea\x00", ("invalid-utf8", 1, 1)),
        (b"a: 1\nb: \x00\n", ("control-character", 2, 4)),
        (b"a: \x1b[31m\n", ("control-character", 1, 4)),
        ("a:\n\tb: 1\n", ("yaml-syntax", 2, 1)),
        ("a: [1\nb: 2\n", ("yaml-syntax", 2, 2)),
        ("a: *nowhere\n", ("yaml-alias", 1, 4)),
        ("a: 1\na: 2\n", ("duplicate-key", 2, 1)),
        ("a: {b: 1, b: 2}\n", ("duplicate-key", 1, 11)),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", ("yaml-alias", 3, 7)),
        ("? [a]\n: 1\n", ("non-string-key", 1, 3)),
        ("? {a: 1}\n: 1\n", ("non-string-key", 1, 3)),
        ("~: 1\n", ("non-string-key", 1, 1)),
        ("?\n: 1\n", ("non-string-key", 1, 2)),
        ("a: !!binary aGk=\n", ("yaml-tag", 1, 4)),
        ("a: !mine {}\n", ("yaml-tag", 1, 4)),
        ("!!set {a: b}\n", ("yaml-tag", 1, 1)),
        ("a: &a [*a]\n", ("yaml-alias", 1, 8)),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, expected):
    assert problems(text) == [expected]


def test_an_alias_in_a_file_of_another_program_is_told_where_such_files_are_listed():
    (problem,) = read_yaml(b".defaults: &defaults {image: python}\ntest: {<<: *defaults}\n").problems
    assert "not a manifest under spec.exclude" in str(problem.message)


def test_a_duplicate_key_keeps_the_first_value_so_that_other_findings_still_make_sense():
    assert read_yaml(b"a: 1\na: {x: 2}\nb: 3\n").documents[0].data == {"a": 1, "b": 3}


def test_documents_before_a_syntax_error_are_still_read():
    stream = read_yaml(b"a: 1\n---\nb: [\n")

    assert [document.data for document in stream.documents] == [{"a": 1}]
    assert [problem.id for problem in stream.problems] == ["yaml-syntax"]


def test_the_deepest_allowed_nesting_is_read():
    assert problems("[" * MAX_DEPTH + "]" * MAX_DEPTH) == []
    assert [p[0] for p in problems("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))] == ["yaml-too-deep"]


@given(st.text("ab:-[]{}&*!|>'\"#%@`,?<~ \n\t0", max_size=60))
@settings(max_examples=150)
def test_no_punctuation_makes_the_reader_raise(text):
    stream = read_yaml(text.encode())

    assert stream.problems or all(isinstance(d, YamlMapping | YamlSequence | YamlScalar) for d in stream.documents)
