"""Pictures of README and docs: each is one that the target makes, each that it makes is used, and all are small."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"
TARGET = (ROOT / "tools" / "pictures.py").read_text("utf-8")
MADE = set(re.findall(r'^    "([\w-]+\.(?:png|svg))",$', TARGET, re.MULTILINE))
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
USED = {name for page in PAGES for name in re.findall(r"pictures/([\w-]+\.(?:png|svg))", page.read_text("utf-8"))}
MOST_BYTES = 400_000


def test_the_target_makes_every_picture_that_is_used_and_no_other():
    assert len(MADE) >= 5
    assert {path.name for path in FOLDER.iterdir()} == MADE
    assert USED == MADE


def test_the_readme_shows_the_comment_in_light_and_in_the_dark():
    readme = (ROOT / "README.md").read_text("utf-8")

    assert re.search(r'<source media="\(prefers-color-scheme: dark\)" srcset="docs/pictures/comment-dark\.png">', readme)
    assert all(re.search(r'\balt="[^"]{20,}"', tag) for tag in re.findall(r"<img[^>]*>", readme))


def test_pictures_are_small_and_load_nothing():
    sizes = {path.name: path.stat().st_size for path in FOLDER.iterdir()}

    assert {name: size for name, size in sizes.items() if size > MOST_BYTES} == {}
    for path in FOLDER.glob("*.svg"):
        assert not re.search(r"url\((?!#)|href=\"http|@import|<script", path.read_text("utf-8"))
