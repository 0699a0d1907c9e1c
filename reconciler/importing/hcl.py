"""Terraform's own language: the resources of one file, with constants evaluated and all else kept as source.

python-hcl2 (extra ``import``) parses; what is read here is its syntax tree, because only that has the places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any, Final

from reconciler.errors import MissingDependencyError
from reconciler.importing.import_result import Gatherer
from reconciler.importing.terraform_resources import Constant, Expression, ListValue, MapValue, Resource, Value
from reconciler.model import Span
from reconciler.text import number_text

_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_SIMPLE: Final = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_LITERALS: Final = {"true": True, "false": False, "null": None}
_MOST_DIGITS: Final = 400
_LARGEST: Final = 10**300


def read_hcl(text: str, out: Gatherer) -> list[Resource]:
    """The resources of a file; a fault of syntax becomes a finding. Raises ``MissingDependencyError`` without python-hcl2."""
    parse, failed = _parser()
    try:
        tree = parse(text)
    except failed as error:
        line = getattr(error, "line", None)
        column = getattr(error, "column", None)
        place = out.at(line, column) if isinstance(line, int) and line > 0 and isinstance(column, int) else out.at(1)
        out.refuse("import-syntax", "this is not Terraform's language from here on. Run terraform validate for more", place)
        return []
    return _File(text, out).read(tree)


@cache
def _parser() -> tuple[Any, Any]:
    try:
        import hcl2
        from lark.exceptions import LarkError
    except ImportError as error:
        msg = (
            "reading .tf files needs the package python-hcl2: pip install 'kafka-quota-reconciler[import]'. Or import what "
            "terraform show -json prints, which needs nothing"
        )
        raise MissingDependencyError(msg) from error
    return hcl2.parses_to_tree, LarkError


class _NotConstantError(Exception):
    pass


class _File:
    def __init__(self, text: str, out: Gatherer) -> None:
        self.text = text
        self.out = out

    def read(self, tree: Any) -> list[Resource]:
        resources = []
        for block in _children(tree.children[0], "block"):
            labels = [self.label(part) for part in block.children if _rule(part) in ("identifier", "string", "keyword")]
            if labels[0] == "resource" and len(labels) == 3:
                body = self.body(next(_children(block, "body")))
                address = f"{labels[1]}.{labels[2]}"
                resources.append(Resource(type=labels[1], address=address, span=self.span(block), body=body))
            elif labels[0] == "module":
                message = (
                    f"what the module {labels[-1]!r} makes is not read. If there are quotas in it, import what terraform show "
                    "-json prints"
                )
                self.out.refuse("import-left-out", message, self.span(block))
        return resources

    def label(self, node: Any) -> str:
        return "".join(str(part) for part in node.scan_values(lambda token: token.type != "DBLQUOTE"))

    def body(self, node: Any) -> dict[str, Value]:
        attributes: dict[str, Value] = {}
        for attribute in _children(node, "attribute"):
            attributes[self.label(attribute.children[0])] = self.value(attribute.children[-1])
        blocks: dict[str, list[Value]] = {}
        for block in _children(node, "block"):
            labels = [self.label(part) for part in block.children if _rule(part) in ("identifier", "string", "keyword")]
            items = self.body(next(_children(block, "body")))
            blocks.setdefault(labels[0], []).append(MapValue(items=items, span=self.span(block)))
        for name, made in blocks.items():
            attributes[name] = ListValue(items=tuple(made), span=made[0].span)
        return attributes

    def value(self, node: Any) -> Value:
        try:
            return self.known(node)
        except (_NotConstantError, RecursionError):
            return Expression(text=self.source(node), span=self.span(node))

    def known(self, node: Any) -> Value:
        while _rule(node) == "expr_term" and len(_parts(node)) == 1:
            node = _parts(node)[0]
        rule, span = _rule(node), self.span(node)
        if rule == "string":
            return Constant(value="".join(self.string(node)), span=span)
        if rule == "literal_value":
            return Constant(value=_LITERALS[str(node.children[0])], span=span)
        if rule == "object":
            return self.table(node, span)
        if rule == "tuple":
            return ListValue(items=tuple(self.value(part) for part in _parts(node)), span=span)
        return Constant(value=_digits(self.number(node)), span=span)

    def table(self, node: Any, span: Span) -> MapValue:
        items: dict[str, Value] = {}
        for element in _children(node, "object_elem"):
            key_node, value_node = _parts(element)
            (key_part,) = _parts(key_node)
            while _rule(key_part) == "expr_term" and len(_parts(key_part)) == 1 and str(key_part.children[0]) != "(":
                key_part = _parts(key_part)[0]
            if _rule(key_part) in ("identifier", "keyword"):
                key = self.label(key_part)
            else:
                known = self.known(key_part)
                if not isinstance(known, Constant) or not isinstance(known.value, str):
                    raise _NotConstantError
                key = known.value
            if key in items:
                raise _NotConstantError
            items[key] = self.value(value_node)
        return MapValue(items=items, span=span)

    def string(self, node: Any) -> Iterator[str]:
        for part in _children(node, "string_part"):
            token = part.children[0]
            kind = getattr(token, "type", "")
            if kind == "STRING_CHARS":
                yield _ESCAPE.sub(_unescaped, str(token))
            elif kind in ("ESCAPED_INTERPOLATION", "ESCAPED_DIRECTIVE"):
                yield _ESCAPE.sub(_unescaped, str(token)[1:])
            else:
                raise _NotConstantError

    def number(self, node: Any) -> Fraction:
        """The value of a number, or of arithmetic with nothing but numbers."""
        rule, parts = _rule(node), _parts(node)
        if rule in ("int_lit", "float_lit") and len(str(node.children[0])) < _MOST_DIGITS:
            return Fraction(str(node.children[0]))
        if rule == "expr_term" and len(parts) == 1:
            return self.number(parts[0])
        if rule == "unary_op" and str(node.children[0]) == "-":
            return -self.number(parts[-1])
        if rule == "binary_op" and len(parts) == 2:
            operator, right = _parts(parts[1])
            return _computed(str(operator.children[0]), self.number(parts[0]), self.number(right))
        raise _NotConstantError

    def source(self, node: Any) -> str:
        return self.text[node.meta.start_pos : node.meta.end_pos].strip()

    def span(self, node: Any) -> Span:
        return self.out.at(node.meta.line, node.meta.column)


def _computed(operator: str, left: Fraction, right: Fraction) -> Fraction:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if operator == "/" and right:
        return left / right
    raise _NotConstantError


def _digits(number: Fraction) -> str:
    if abs(number) > _LARGEST:
        raise _NotConstantError
    return str(number.numerator) if number.denominator == 1 else number_text(float(number))


def _unescaped(match: re.Match[str]) -> str:
    short, long, character = match.groups()
    if character is None:
        code = int(short or long, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise _NotConstantError
        return chr(code)
    if character not in _SIMPLE:
        raise _NotConstantError
    return _SIMPLE[character]


def _rule(node: Any) -> str:
    return str(node.data) if hasattr(node, "data") else ""


def _children(node: Any, rule: str) -> Iterator[Any]:
    return (child for child in node.children if _rule(child) == rule)


def _parts(node: Any) -> list[Any]:
    """The parts of a rule that carry a meaning: no brackets, no commas, no line ends."""
    return [child for child in node.children if hasattr(child, "data") and _rule(child) != "new_line_or_comment"]
