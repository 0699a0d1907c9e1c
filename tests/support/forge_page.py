"""A comment as a page of a forge: GitHub's parser, GitHub's rules for alerts, and GitHub's stylesheet."""

from __future__ import annotations

import functools
import io
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path

import cmarkgfm
from cmarkgfm.cmark import Options

STYLESHEET = "github-markdown-css@5.8.1"
"""GitHub's own rules for Markdown, generated from its site; MIT licence."""

_EXTENSIONS = ["table", "autolink", "strikethrough"]
_ALERT = re.compile(r"<blockquote>\n<p>\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\n?(.*?)</blockquote>", re.DOTALL)
_BOX = """
body { margin: 0; padding: 16px; font-family: -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; }
[role=img] { display: inline-block; width: 1.25em; overflow: hidden; }
.markdown-body { box-sizing: border-box; font-size: 14px; padding: 16px; border: 1px solid #d1d9e0; border-radius: 6px; }
"""
"""What surrounds a comment on GitHub's page: 14 px text in a box with 16 px of room; signs as wide as a font makes them."""


@functools.cache
def stylesheet() -> str:
    """The stylesheet as npm has it. Raises ``CalledProcessError`` without npm or its registry."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, STYLESHEET]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as files:
            member = files.extractfile("package/github-markdown.css")
            assert member is not None
            return member.read().decode("utf-8")


def comment_page(markdown: str) -> str:
    """The whole page."""
    html = cmarkgfm.markdown_to_html_with_extensions(markdown, Options.CMARK_OPT_UNSAFE, _EXTENSIONS)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Comment</title>'
        f"<style>{stylesheet()}{_BOX}</style></head>"
        f'<body class="markdown-page"><article class="markdown-body">{_with_alerts(html)}</article></body></html>\n'
    )


def _with_alerts(html: str) -> str:
    def alert(match: re.Match[str]) -> str:
        kind = match[1].lower()
        title = f'<p class="markdown-alert-title">{match[1].title()}</p>'
        return f'<div class="markdown-alert markdown-alert-{kind}">{title}<p>{match[2]}</div>'

    return _ALERT.sub(alert, html)
