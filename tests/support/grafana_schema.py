"""The types that Grafana publishes for dashboards, and TypeScript's compiler to check one. npm brings both when a test asks."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_PACKAGES: Final = {
    "@grafana/schema@13.2.3": "sha512-rk8FEO7yuFfRTK/JD39747SZFQ+iCTQbpm6Mh2OjnqGx/g/uQQFx56t64eCLXWEyoR68ru4cigcGKrXk+ozrLg==",
    "typescript@5.9.3": "sha512-jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw==",
}
_TYPES: Final = "dist/types/raw/dashboard/x/types.gen.d.ts"
_ENUM: Final = re.compile(r"export (?:declare )?enum (\w+) \{(.*?)\}", re.DOTALL)
_VALUE: Final = re.compile(r'(\w+) = ("[^"]*"|-?\d+)')


def check_dashboard(dashboard: Mapping[str, object], folder: Path) -> str:
    """What the compiler complains about when the dashboard is a value of Grafana's type; empty for a good one.

    JSON has texts where TypeScript has enums, so each enum becomes the texts of its members.
    """
    schema, typescript = (_unpacked(name, integrity, folder) for name, integrity in _PACKAGES.items())
    text = (schema / _TYPES).read_text("utf-8")
    members = {f"{enum[1]}.{name}": value for enum in _ENUM.finditer(text) for name, value in _VALUE.findall(enum[2])}
    text = _ENUM.sub(lambda enum: f"export type {enum[1]} = {' | '.join(value for _, value in _VALUE.findall(enum[2]))};", text)
    for name in sorted(members, key=len, reverse=True):
        text = text.replace(name, members[name])
    (folder / "grafana.ts").write_text(text, "utf-8")
    value = json.dumps(dashboard)
    (folder / "check.ts").write_text(
        f'import type {{Dashboard}} from "./grafana";\nexport const dashboard: Dashboard = {value};\n', "utf-8"
    )
    compiler = ["node", str(typescript / "bin" / "tsc"), "--noEmit", "--strict", "--pretty", "false", "check.ts"]
    return subprocess.run(compiler, cwd=folder, capture_output=True, text=True, check=False, timeout=120).stdout


def _unpacked(name: str, integrity: str, folder: Path) -> Path:
    """The package, whose archive must be the one that was pinned."""
    done = subprocess.run(["npm", "pack", name, "--json", "--silent"], cwd=folder, capture_output=True, text=True, check=True)
    (packed,) = json.loads(done.stdout)
    assert packed["integrity"] == integrity, "npm gave another archive than the pinned one"
    target = folder / packed["filename"].removesuffix(".tgz")
    if not target.exists():
        with tarfile.open(folder / packed["filename"]) as archive:
            archive.extractall(target, filter="data")
    return target / "package"
