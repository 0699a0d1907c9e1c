"""Path patterns of the Repository document."""

import pytest

from reconciler.manifest.discovery import path_matcher


@pytest.mark.parametrize(
    ("pattern", "path", "excluded"),
    [
        ("mkdocs.yml", "mkdocs.yml", True),
        ("mkdocs.yml", "docs/mkdocs.yml", False),
        ("./mkdocs.yml", "mkdocs.yml", True),
        ("**/mkdocs.yml", "mkdocs.yml", True),
        ("**/mkdocs.yml", "a/b/mkdocs.yml", True),
        ("charts", "charts/a/b.yaml", True),
        ("charts/", "charts/b.yaml", True),
        ("charts/**", "charts/a/b.yaml", True),
        ("charts/*", "charts/a.yaml", True),
        ("charts/*.yaml", "charts/a/b.yaml", False),
        ("*.tmp.yaml", "a.tmp.yaml", True),
        ("*.tmp.yaml", "a/a.tmp.yaml", False),
        ("a?.yaml", "ab.yaml", True),
        ("a?.yaml", "a/.yaml", False),
        ("a.yaml", "aXyaml", False),
        ("[a].yaml", "a.yaml", False),
        ("a/**/b.yaml", "a/b.yaml", True),
        ("a/**/b.yaml", "a/x/y/b.yaml", True),
        ("a/**/b*c/**/d", "a/x/bc/bxc/y/d/e", True),
        ("a/**/b*c/**/d", "a/x/bc/y", False),
        ("**/**/b", "b", True),
        ("**", "a/b", True),
        ("a*b*c", "aXbYbc", True),
        ("a*b*c", "aXcYb", False),
        ("a*b", "aXbY", False),
        ("*a", "ba/c", True),
    ],
)
def test_a_pattern_excludes_what_it_says_and_no_more(pattern, path, excluded):
    assert path_matcher([pattern])(path) is excluded


def test_no_pattern_excludes_nothing():
    assert not path_matcher([])("a.yaml")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [("*a" * 40 + "b", "a" * 250), ("**/a/" * 40 + "b", "a/" * 2000 + "c"), ("a*" * 40 + "/" + "*a" * 40, "a" * 250 + "/b")],
)
def test_no_pattern_makes_matching_slow(pattern, path):
    # Matching that goes back and forth would take longer than the age of the universe here.
    assert not path_matcher([pattern])(path)
