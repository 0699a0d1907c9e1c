"""The lint of words: counts phrases that this project's style avoids, against a budget that only falls.

``python tools/words.py`` fails when a count is above its budget in ``tools/words.toml``; ``--list RULE`` prints each place.
``python tools/words.py --lower`` writes the counts of now where they are below the budget; no option raises one.

Read are the docs (README.md, CONTRIBUTING.md and the pages in ``docs``, without code), and of the package's modules the messages
(string literals that are sentences; no style sheets), the docstrings, and the names of local values and parameters.
"""

from __future__ import annotations

import argparse
import ast
import gc
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
BUDGET: Final = Path("tools/words.toml")

RULES: Final = {
    "told": r"\b(?:tells?|told|says?|said|saying)\b",
    "holds": r"\b(?:holds?|hides?)\b",
    "somebody": r"\b(?:some|no|any|every)body\b|\bwho(?:ever|m)\b",
    "is-no": r"(?<!\bthere )\b(?:is|are|was|were|be) no\b(?! longer| more)",
    "semicolon": r";(?=\s|$)",
    "idiom": r"\b(?:so often|so long|this bad|as for)\b",
}
"""Programs report, values apply, roles have names, *is not a*, two sentences, plain help."""

TERMS: Final = {
    "quota-group": r"(?<!token )(?<!\btoken-)\bbuckets?\b",
    "counted": r"\bcharged\b",
    "per-second-totals": r"\bnormal[ -]form\b|\bcells?\b|\bsums? of (?:whole )?seconds\b",
    "exception": r"\bacceptances\b|\ban acceptance\b",
    "client-id": r"\bclient ids?\b",
    "outside-git": r"\bbehind (?:\w+ )?\w+'?s? backs?\b",
}
"""One word for each thing in messages and help, by its name: the other words for it."""

OUTCOMES: Final = {
    "not-checked": r"\bnot judged\b|\b(?:could|can)(?:not| not)? be judged\b|\bcannot judge\b"
    r"|\b(?:effects? (?:is|are)|nothing(?: is)?) (?:not )?known\b|: not recorded\b|\bstays? undecided\b",
    "blocked": r"\b(?:rules?|guards?|polic(?:y|ies))(?: that)? (?:refuses?|rejects?)\b|\bmust be accepted\b"
    r"|\b(?:refused|rejected) by (?:a|the|its) (?:rule|guard|policy)\b|\bblocked: \w+ guards? needs?\b",
}
"""One word for each outcome: *inconclusive* (thin evidence), *not checked* (no evidence), *blocked*, *needs acceptance*."""

_ROW: Final = re.compile(r"(?=.*[=*])[\w*?=() ]+")
"""The members of a JSON document, which have names of their own."""

_ANY: Final = re.compile("|".join((*RULES.values(), *TERMS.values(), *OUTCOMES.values())), re.IGNORECASE)

FRAGMENT: Final = "fragment"
_FRAGMENT: Final = re.compile(
    r"(?:about|after|also|as|at|before|between|by|equal|everything|for|from|how|in|its|none|not|nothing|now|of|on|once|only|some|that"
    r"|these|this|those|to|what|whatever|when|where|which|who|whose|why|with|without)\b|(?:``none``|the \w+\.$)",
    re.IGNORECASE,
)
"""A docstring of a function starts with a verb, or with an article and a noun, and names more than one word."""

SUBJECT: Final = "no-subject"
LONG: Final = "long-sentence"
NAME: Final = "pronoun"
_PRONOUNS: Final = frozenset({"found", "mine", "one", "ours", "said", "theirs", "there", "thing", "told"})
"""A value is named after what it is."""
_NO_SUBJECT: Final = re.compile(r"^(?:it|its|there (?:is|are|was|were))\b", re.IGNORECASE)
_MOST_WORDS: Final = 25
_STYLE_RULE: Final = re.compile(r"\{ [a-z-]+: [^{}]*; \}")
_SENTENCE_WORDS: Final = 3
_END: Final = re.compile(r"(?<=[.!?:])\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One phrase to change: ``rule`` names the rule, ``kind`` is ``docs``, ``messages``, ``docstrings`` or ``names``."""

    kind: str
    rule: str
    path: str
    line: int
    text: str


def hits(root: Path) -> Iterator[Hit]:
    """Every hit below ``root``, in the order of git's list of files."""
    for path in _tracked(root):
        file = root / path
        if path.endswith(".md") and (path in {"README.md", "CONTRIBUTING.md"} or path.startswith("docs/")):
            yield from _checked("docs", path, prose(file.read_text(encoding="utf-8")))
        elif path.endswith("/catalogue.toml"):
            rows = [row for table in tomllib.loads(file.read_text(encoding="utf-8")).values() for row in table.values()]
            yield from _checked("messages", path, ((1, row["text"]) for row in rows if "text" in row))
        elif path.startswith("reconciler/") and path.endswith(".py"):
            nodes = _nodes(ast.parse(file.read_text(encoding="utf-8")))
            yield from _checked("messages", path, messages(nodes))
            yield from _checked("docstrings", path, docstrings(nodes))
            yield from (Hit(kind="docstrings", rule=FRAGMENT, path=path, line=line, text=text) for line, text in fragments(nodes))
            yield from (Hit(kind="names", rule=NAME, path=path, line=line, text=name) for line, name in pronouns(nodes))


def _nodes(tree: ast.AST) -> list[ast.AST]:
    """All nodes, as ``ast.walk`` gives them in another order, in a third of its time: most of the lint is this walk."""
    nodes = [tree]
    for node in nodes:
        for value in vars(node).values():
            if isinstance(value, list):
                nodes += [part for part in value if isinstance(part, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.Load):
                nodes.append(value)
    return nodes


def prose(markdown: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, list items and table cells with their first line; code blocks and code spans are left out."""
    block: list[str] = []
    first, fenced = 1, False
    for number, line in enumerate([*markdown.splitlines(), ""], 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            continue
        if fenced:
            continue
        text = re.sub(r"`[^`]*`", "code", line).strip()
        starts = not text or text.startswith(("|", "- ", "#", "> ")) or re.match(r"\d+\. ", text)
        if starts and block:
            yield first, " ".join(block)
            block = []
        if text.startswith("|"):
            yield from ((number, cell.strip()) for cell in text.strip("|").split("|") if cell.strip(" -:"))
        elif text:
            first = first if block else number
            block.append(text.lstrip("-#> "))


def docstrings(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Docstrings of modules, classes, functions and fields, with their line; code spans count as one word."""
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, re.sub(r"``[^`]*``", "code", node.value.value)


def fragments(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """First lines of docstrings of functions that are parts of sentences, with their line."""
    for node in nodes:
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and (text := ast.get_docstring(node))
            and _FRAGMENT.match(text)
        ):
            yield node.body[0].lineno, text.splitlines()[0]


def pronouns(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Bindings of local values and parameters that say nothing about the value, with their line."""
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in _PRONOUNS:
            yield node.lineno, node.id
        elif isinstance(node, ast.arg) and node.arg in _PRONOUNS:
            yield node.lineno, node.arg


def messages(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """String literals of three words and more, with their line; values in f-strings count as one word."""
    no_message = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    no_message |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if id(node) in no_message:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        else:
            continue
        if len(text.split()) >= _SENTENCE_WORDS and not _STYLE_RULE.search(text):
            yield node.lineno, text


def _checked(kind: str, path: str, texts: Iterator[tuple[int, str]]) -> Iterator[Hit]:
    for line, text in texts:
        yield from (
            Hit(kind=kind, rule=rule, path=path, line=line, text=text)
            for rule in broken(text, message=kind == "messages")
            if kind != "docstrings" or rule in RULES
        )


def broken(text: str, *, message: bool) -> Iterator[str]:
    """The rule of each hit in ``text``: once for each place."""
    if _ANY.search(text):
        for rule, pattern in (RULES | OUTCOMES | TERMS if message and not _ROW.fullmatch(text) else RULES | OUTCOMES).items():
            yield from (rule for _ in re.finditer(pattern, text, re.IGNORECASE))
    if message and _NO_SUBJECT.match(text):
        yield SUBJECT
    yield from (LONG for sentence in _END.split(text) if len(sentence.split()) > _MOST_WORDS)


def _tracked(root: Path) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)  # noqa: S607 - git of the user
    return [path for path in listed.stdout.split("\0") if path and (root / path).is_file()]


def main() -> int:
    """The command; 1 when a count is above its budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--list", metavar="RULE", help="print each place of this rule")
    parser.add_argument("--lower", action="store_true", help="write lower counts into the budget")
    options = parser.parse_args()
    gc.disable()  # trees of half a million nodes, and the process ends soon
    found = list(hits(ROOT))
    if options.list:
        sys.stdout.writelines(f"{hit.path}:{hit.line}: {hit.text}\n" for hit in found if hit.rule == options.list)
        return 0
    counts = Counter((hit.kind, hit.rule) for hit in found)
    budget = tomllib.loads((ROOT / BUDGET).read_text(encoding="utf-8"))
    over = [
        f"{kind}: {rule}: {counts[kind, rule]}, the budget is {most} (python tools/words.py --list {rule})"
        for kind, rules in budget.items()
        for rule, most in rules.items()
        if counts[kind, rule] > most
    ]
    sys.stdout.writelines(f"{line}\n" for line in over)
    if options.lower:
        (ROOT / BUDGET).write_text(_lowered(budget, counts), encoding="utf-8")
    return 1 if over else 0


def _lowered(budget: dict[str, dict[str, int]], counts: Counter[tuple[str, str]]) -> str:
    lines = ["# Written by tools/words.py --lower: how often each phrase may still occur. A number is never raised.\n"]
    for kind, rules in budget.items():
        lines.append(f"\n[{kind}]\n")
        lines += [f"{rule} = {min(most, counts[kind, rule])}\n" for rule, most in rules.items()]
    return "".join(lines)


if __name__ == "__main__":
    sys.exit(main())
