"""The title of a fold is HTML on a forge: whatever a name in it is, it stays text."""

from __future__ import annotations

import pytest

from reconciler.model import display_name, name_part
from reconciler.render import Line, line
from reconciler.render.layout import Fold, View
from reconciler.render.markdown import view_markdown
from tests.support.hostile_names import HOSTILE
from tests.support.markdown_views import by_github, by_markdown_it


def titled(title: Line) -> str:
    fold = Fold(title=title, blocks=(line("inside"),))
    return view_markdown(View(kind="backtest", cluster=None, title=line(), answer=line("Done."), blocks=(fold,)))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_in_the_title_of_a_fold_is_text_in_code(name: str) -> None:
    shown = display_name(name)
    for typed in (True, False):
        markdown = titled(line(pages=("clear ", name_part(shown) if typed else shown)))
        for read in (by_github, by_markdown_it):
            seen = read(markdown)
            assert set(seen.elements) <= {"h3", "p", "strong", "details", "summary", "ul", "li", "code"}
            assert (
                "".join(text for element, text in seen.texts if element in ("summary", "code")).strip()
                == f"clear {shown}".strip()
            )
            if typed or "@" in name:
                assert "@" not in seen.outside("code")
