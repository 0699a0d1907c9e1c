"""The documentation as a site: built from a copy of what it is made of, and served on loopback."""

from __future__ import annotations

import contextlib
import functools
import http.server
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def copy_sources(folder: Path) -> Path:
    """What the site is made of, so that generated pages do not land in the work tree."""
    for name in ("docs", "tools", "schemas", "examples", "deploy", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "reference"))
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


PROGRAM = """
import functools, sys
from snowballstemmer.english_stemmer import EnglishStemmer
EnglishStemmer.stemWord = functools.cache(EnglishStemmer.stemWord)
from sphinx.cmd.build import main
sys.exit(main())
"""
"""Sphinx, which would look for the stems of a word again on each of 260 pages."""


def build(docs: Path, site: Path, *settings: str) -> subprocess.CompletedProcess[str]:
    """Run Sphinx as ``make site`` does, with other settings of ``conf.py`` where some are given (``NAME=VALUE``)."""
    others = [argument for setting in settings for argument in ("-D", setting)]
    command = [sys.executable, "-c", PROGRAM, "-W", "--keep-going", "-q", "-b", "html", *others, str(docs), str(site)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextlib.contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of a web server for the folder; it ends with the block."""
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
