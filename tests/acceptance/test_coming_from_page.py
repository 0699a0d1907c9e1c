"""The commands that docs/import.md shows are executed on its own files, and print what the page says they print."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from reconciler.features.importing.conversion import TOOLS
from tests.support.command import invoke
from tests.support.pages import page

PAGE = page("import")
SECTIONS = dict(re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
FILE = re.compile(r"`([\w./-]+\.\w+)`[^`\n]*:\n\n```(?:yaml|terraform|json|sh|text)\n(.*?)```", re.DOTALL)
STEP = re.compile(r"^\$ (?P<command>[^\n]*)\n(?P<output>.*?)(?=^\$ |\Z)", re.DOTALL | re.MULTILINE)


def steps(section: str) -> list[tuple[str, str]]:
    return [
        (step["command"], step["output"])
        for block in re.findall(r"```console\n(.*?)```", section, re.DOTALL)
        for step in STEP.finditer(block)
    ]


@pytest.mark.parametrize(("title", "tool"), [(title, title.lower()) for title in SECTIONS if title.lower() in TOOLS])
def test_every_command_prints_what_the_page_says(tmp_path: Path, title: str, tool: str) -> None:
    section = SECTIONS[title]
    for name, text in FILE.findall(section):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    shown = steps(section)

    assert any(f"import --from {tool} " in command for command, _ in shown)
    for command, output in shown:
        program, *arguments = shlex.split(command)
        assert program == "kafka-quotas"
        done = invoke(*arguments, cwd=tmp_path)
        assert done.out == output, command
        assert done.code == (1 if "Nothing was written" in output else 0), command
    assert shown[-1] == ("kafka-quotas validate quotas", shown[-1][1])
    shutil.rmtree(tmp_path / "quotas")


def test_every_tool_has_its_section_with_what_maps_what_is_refused_and_what_is_gained() -> None:
    titles = {title.lower(): text for title, text in SECTIONS.items()}

    assert set(TOOLS) <= titles.keys()
    assert [tool for tool in TOOLS if not all(word in titles[tool] for word in ("| here |", "Refused:", "You gain:"))] == []
