"""Path patterns of the Repository document."""

import pytest

from reconciler.manifest.globs import path_matcher


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
    ],
)
def test_a_pattern_excludes_what_it_says_and_no_more(pattern, path, excluded):
    assert path_matcher([pattern])(path) is excluded


def test_no_pattern_excludes_nothing():
    assert not path_matcher([])("a.yaml")
