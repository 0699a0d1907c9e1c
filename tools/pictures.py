"""The pictures of README and docs: the commands run on an example, a real browser shows what they write. See ``make pictures``.

Without arguments all of ``PICTURES``; with names, those. The session needs Kafka. The comment needs npm, which brings GitHub's
style sheet and fonts.
"""

from __future__ import annotations

import io
import json
import math
import os
import pty
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from reconciler.documents import write_snapshot
from reconciler.model import Entity
from tests.builders import current
from tests.support.chromium import Chromium, chromium
from tests.support.forge_page import comment_page
from tests.support.github_server import HEAD, NUMBER, REPOSITORY, TOKEN, github_server
from tests.support.recorded_parquet import SCHEMA, START

PICTURES: Final = (
    "comment-light.png",
    "comment-dark.png",
    "card-light.png",
    "card-dark.png",
    "backtest.png",
    "report.png",
    "demo.svg",
)
FOLDER: Final = ROOT / "docs" / "pictures"
_CROPPED: Final = {"backtest": "main table", "report": "#who-answer table"}
"""Pages, and the last element that their picture has."""
_ASKED: Final = "#who?cluster=prod-eu&state=live&user=orders-service&client=orders-1"
_SCALE: Final = 2
"""Dots of a picture for each pixel of a page, as screens of today have."""
_FONTS: Final = ("@fontsource/noto-sans@5.3.0",)
"""Open fonts (OFL-1.1) of the picture of the comment."""
_SIGNS: Final = {
    "\N{LARGE RED CIRCLE}": ("\N{BLACK CIRCLE}", "#d1242f"),
    "\N{LARGE ORANGE CIRCLE}": ("\N{BLACK CIRCLE}", "#d97706"),
    "\N{LARGE YELLOW CIRCLE}": ("\N{BLACK CIRCLE}", "#d4a72c"),
    "\N{LARGE GREEN CIRCLE}": ("\N{BLACK CIRCLE}", "#1a7f37"),
    "\N{BLACK QUESTION MARK ORNAMENT}": ("?", "#d1242f"),
    "\N{MEDIUM WHITE CIRCLE}": ("\N{WHITE CIRCLE}", "#59636e"),
    "\N{WARNING SIGN}\N{VARIATION SELECTOR-16}": ("\N{WARNING SIGN}", "#9a6700"),
}
"""Emoji as signs of common fonts: machines without a display have no font of emoji."""
_MIB: Final = 1024 * 1024
_CLIENTS: Final = (
    ("orders-service", "orders-1", "produce", 2.6),
    ("orders-service", "orders-2", "produce", 1.4),
    ("payments-api", "settlement", "produce", 1.1),
    ("analytics-batch", "spark", "fetch", 6.0),
    ("search-indexer", "indexer", "fetch", 2.0),
    ("mirror", "mirror-maker", "produce", 5.0),
)
"""User, client-id, kind, and MiB/s on each broker at the height of the day."""
_BEFORE: Final = {
    "orders-service": {"producer_byte_rate": 8},
    "payments-api": {"producer_byte_rate": 10},
    "analytics-batch": {"consumer_byte_rate": 20},
    "search-indexer": {"consumer_byte_rate": 20},
    "mirror": {"producer_byte_rate": 4},
}
_AFTER: Final = {
    "team-orders": {"orders-service": {"producer_byte_rate": 2}},
    "team-payments": {"payments-api": {"producer_byte_rate": 6}},
    "team-analytics": {"analytics-batch": {"consumer_byte_rate": 12, "producer_byte_rate": 1}},
    "team-search": {"search-indexer": {"consumer_byte_rate": 20}},
    "team-platform": {"mirror": {"producer_byte_rate": 4}},
}
_CLUSTER: Final = """apiVersion: kafka-quotas/v1
kind: Cluster
metadata: {name: prod-eu}
spec:
  prune: never
  backtest:
    fail:
      - {verdicts: [throttled], match: {user: payments-api}, reason: payments are never throttled}
"""


def main(names: list[str]) -> None:
    """Write the pictures of these names, or all."""
    wanted = set(names or PICTURES)
    if unknown := wanted - set(PICTURES):
        sys.exit(f"no picture is called {', '.join(sorted(unknown))}")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kafka-quotas-pictures-") as name:
        folder = Path(name)
        if wanted - {"demo.svg"}:
            write_example(folder)
            with chromium() as browser:
                for picture, content in browser_pictures(browser, folder, wanted):
                    (FOLDER / picture).write_bytes(content)
        if "demo.svg" in wanted:
            (FOLDER / "demo.svg").write_text(session_svg(demo_output()), encoding="utf-8")


def write_example(folder: Path) -> None:
    """Manifests in a repository, the quotas of a cluster, 24 hours of traffic on three brokers, and the outputs."""
    (folder / "quotas").mkdir()
    (folder / "quotas" / "cluster.yaml").write_text(_CLUSTER, encoding="utf-8")
    for owner, users in _AFTER.items():
        path = folder / "quotas" / "teams" / owner / "quotas.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(_manifest(owner, users), encoding="utf-8")
    live = {
        Entity.of({"user": user}): {key: value * float(_MIB) for key, value in quotas.items()} for user, quotas in _BEFORE.items()
    }
    write_snapshot(current(live), folder / "now.json")
    with pq.ParquetWriter(folder / "traffic.parquet", SCHEMA) as writer:
        for rows in _requests():
            writer.write_table(pa.Table.from_pylist(rows, schema=SCHEMA))
    _git(folder, "init", "-q")
    _git(folder, "add", "quotas")
    _git(folder, "commit", "-q", "-m", "Quotas")
    _run(folder, "plan", "quotas", "--current", "now.json", "--out", "json=plan.json", "--out", "html=plan.html")
    outs = [part for form in ("html=backtest.html", "json=backtest.json") for part in ("--out", form)]
    _run(folder, "backtest", "quotas", "--current", "now.json", "--traffic", "traffic.parquet", *outs)
    _run(folder, "report", "quotas", "--current", "now.json", "--out", "html=report.html")


def _manifest(owner: str, users: dict[str, dict[str, int]]) -> str:
    lines = ["apiVersion: kafka-quotas/v1", "kind: ClientQuotas", f"metadata: {{name: {owner}, owner: {owner}}}"]
    lines += ["spec:", "  quotas:"]
    for user, quotas in users.items():
        values = ", ".join(f"{key}: {value}MiB" for key, value in quotas.items())
        lines += [f"    - match: {{user: {user}}}", f"      quotas: {{{values}}}"]
    return "\n".join(lines) + "\n"


def _requests() -> Iterator[list[dict[str, object]]]:
    """A day and a night of each client on each broker, one request in each second. Broker 3 has no lines for an hour.

    Broker 2 has half of the load of the others, and an hour with twice as much.
    """
    for broker in (1, 2, 3):
        for number, client in enumerate(_CLIENTS):
            yield [
                _request(broker, number, client, second)
                for second in range(86_460)
                if broker != 3 or not 54_000 <= second < 57_600
            ]


def _request(broker: int, number: int, client: tuple[str, str, str, float], second: int) -> dict[str, object]:
    user, client_id, kind, height = client
    day = 0.55 + 0.45 * math.sin(2 * math.pi * (second - 14_400) / 86_400)
    noise = 1 + 0.12 * math.sin(second * (broker + number) / 37) + 0.05 * math.sin(second / (5 + broker))
    share = 1.0 if broker != 2 else 2.0 if 36_000 <= second < 39_600 else 0.5
    return {
        "ts": int(START.timestamp() * 1e6) + second * 1_000_000 + broker * 1000 + number,
        "interval_ms": 0,
        "broker": broker,
        "user": user,
        "client_id": client_id,
        "kind": kind,
        "amount": int(height * day * noise * share * _MIB),
        "semantics": "event",
        "throttled": False,
    }


def _git(folder: Path, *arguments: str) -> None:
    who = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
    name = ("-c", "user.name=example", "-c", "user.email=example@example.com")
    subprocess.run(["git", *name, *arguments], cwd=folder, check=True, env={**os.environ, **who})


def _run(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> None:
    """A command; one that judges may refuse."""
    command = [sys.executable, "-m", "reconciler", *arguments]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        sys.exit(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")


def browser_pictures(browser: Chromium, folder: Path, wanted: set[str]) -> Iterator[tuple[str, bytes]]:
    """Each wanted picture of a page, a card or the comment."""
    for page, until in _CROPPED.items():
        if f"{page}.png" in wanted:
            browser.look(width=1100, height=1000, scale=_SCALE)
            browser.open(folder / f"{page}.html", _ASKED if page == "report" else "")
            yield f"{page}.png", browser.screenshot(until=until)
    for dark in (False, True):
        scheme = "dark" if dark else "light"
        if f"card-{scheme}.png" in wanted:
            browser.look(width=1000, dark=dark, scale=_SCALE)
            browser.open(folder / "backtest.html")
            yield f"card-{scheme}.png", browser.screenshot(selector="details.card")
        if f"comment-{scheme}.png" in wanted:
            path = folder / f"comment-{scheme}.html"
            path.write_text(comment_on_page(folder, dark=dark), encoding="utf-8")
            browser.look(width=860, dark=dark, scale=_SCALE)
            browser.open(path, ready="true")
            browser.evaluate("Promise.all([...document.fonts].map((one) => one.load())).then(() => true)")
            yield f"comment-{scheme}.png", browser.screenshot(selector="article")


def comment_on_page(folder: Path, *, dark: bool) -> str:
    """The comment that the command posts, as GitHub's parser and style sheet show it."""
    event = {"pull_request": {"number": NUMBER, "head": {"sha": HEAD}}}
    (folder / "event.json").write_text(json.dumps(event), encoding="utf-8")
    with github_server() as server:
        github = {"GITHUB_API_URL": server.url, "GITHUB_EVENT_PATH": str(folder / "event.json")}
        github |= {"GITHUB_REPOSITORY": REPOSITORY, "GITHUB_TOKEN": TOKEN}
        _run(folder, "comment", "plan.json", "--backtest", "backtest.json", "--cluster", "prod-eu", env=github)
        (posted,) = (one["body"] for one in server.comments.values())
    fonts = "".join(_font(folder, package) for package in _FONTS)
    families = "body, .markdown-body { font-family: 'Noto Sans', sans-serif !important; }"
    ground = "body { background: #0d1117; }" if dark else ""
    page = comment_page(posted).replace("</style>", f"{fonts}{families}{ground}</style>", 1)
    for sign, (plain, color) in _SIGNS.items():
        page = page.replace(sign, f'<span style="color: {color}">{plain}</span>')
    return page


def _font(folder: Path, package: str) -> str:
    """The rules of a font package, with its files on this machine: pictures are the same on machines without these fonts."""
    place = folder / "fonts" / package.rpartition("/")[2]
    if not place.exists():
        place.mkdir(parents=True)
        subprocess.run(["npm", "pack", "--silent", package], cwd=place, check=True, capture_output=True, timeout=300)
        (archive,) = place.glob("*.tgz")
        with tarfile.open(archive) as files:
            files.extractall(place, filter="data")
    files = (place / "package" / "files").as_uri()
    names = ("400.css", "600.css", "700.css")
    styles = [path.read_text("utf-8") for name in names if (path := place / "package" / name).exists()]
    return "".join(styles).replace("url(./files", f"url({files}")


def demo_output() -> str:
    """What the demo prints on a terminal of 100 columns."""
    parent, child = pty.openpty()
    variables = {**os.environ, "COLUMNS": "100", "LINES": "50", "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "reconciler", "sandbox", "demo"],
        stdin=child,
        stdout=child,
        stderr=subprocess.DEVNULL,
        env=variables,
    )
    os.close(child)
    parts = []
    while True:
        try:
            part = os.read(parent, 65_536)
        except OSError:  # the terminal's other side is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(parent)
    if process.wait() != 0:
        sys.exit(f"the demo ended with {process.returncode}")
    return b"".join(parts).decode("utf-8").replace("\r\n", "\n")


_SHOWN: Final = (
    (r"[$] kafka-quotas validate", r"[$] kafka-quotas plan"),
    (r"[$] kafka-quotas backtest", r"Not checked"),
    (r"[$] kafka-quotas apply [^\n]* --accept", r"Kafka's own tool"),
)
"""Parts of the demo: patterns of where each begins, and of what follows it."""


def session_svg(output: str) -> str:
    """A check, the answer of the backtest, and the apply of the demo as a drawing that loads nothing."""
    from rich.console import Console
    from rich.terminal_theme import MONOKAI
    from rich.text import Text

    plain = re.sub(r"/tmp/[\w.-]+/", "", output)
    escapes = r"(?:\x1b\[[0-9;]*m)*"
    parts = []
    for begin, end in _SHOWN:
        found = re.search(rf"^{escapes}{begin}.*?(?={escapes}{end})", plain, re.DOTALL | re.MULTILINE)
        if found is None:
            sys.exit(f"the demo prints no {begin!r} before {end!r}")
        parts.append(found[0].strip("\n"))
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(Text.from_ansi("\n\n".join(parts)))
    drawing = console.export_svg(title="kafka-quotas sandbox demo", theme=MONOKAI, unique_id="demo")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawing, flags=re.DOTALL).replace("Fira Code", "ui-monospace")


if __name__ == "__main__":
    if shutil.which("git") is None:
        sys.exit("git is not installed")
    main(sys.argv[1:])
