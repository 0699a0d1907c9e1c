"""Messages: what their parts are, and how each output styles them."""

from __future__ import annotations

import copy
import pickle

from hypothesis import given
from hypothesis import strategies as st

from reconciler.documents import VALUES
from reconciler.model import Entity, Message, MessagePart, PartKind, Span, compose, flag_part, key_part
from reconciler.render.html_page import message_html
from reconciler.render.layout import line
from reconciler.render.markdown import message_markdown
from reconciler.render.terminal import plain
from reconciler.text import amount_part

MESSAGE = VALUES.kind(Message)
ALICE = Entity.of({"user": "alice"})
CUT = compose(
    "Cuts {key} for {entity} to {after}. See {place}, or pass {flag}.",
    key=key_part("producer_byte_rate"),
    entity=ALICE,
    after=amount_part("producer_byte_rate", 2 * 1024**2),
    place=Span(file="a.yaml", line=3, column=5),
    flag=flag_part("--accept large-reduction"),
)
PARTS = st.one_of(
    st.builds(MessagePart, kind=st.just(PartKind.TEXT), text=st.text(max_size=20)),
    st.builds(MessagePart, kind=st.sampled_from(PartKind), text=st.text(max_size=20), value=st.floats(allow_nan=False)).filter(
        lambda part: part.kind is not PartKind.TEXT
    ),
)


def test_every_output_styles_the_parts() -> None:
    assert message_markdown(CUT) == (
        "Cuts `producer_byte_rate` for `user=alice` to 2\N{NO-BREAK SPACE}MiB/s. See `a.yaml:3:5`, or pass "
        "`--accept large-reduction`."
    )
    assert message_html(CUT).startswith("Cuts <code><bdi>producer_byte_rate</bdi></code> for ")
    assert '<span class="amount">2 MiB/s</span>' in message_html(CUT)
    assert plain([line(CUT)]) == CUT + "\n"


def test_words_of_others_are_code_whatever_part_they_claim_to_be() -> None:
    evil = Message([MessagePart(kind=kind, text="@all #1 <b> [x](http://e.org) | `") for kind in PartKind])
    shown = message_markdown(evil)
    outside = "".join(shown.split("``")[::2])
    assert not set("@#<[|") & set(outside), shown
    assert "<b>" not in message_html(evil)


@given(st.lists(PARTS, max_size=6), st.lists(PARTS, max_size=6))
def test_messages_add_copy_and_pass_through_json(first: list[MessagePart], second: list[MessagePart]) -> None:
    both = Message(first) + Message(second)
    assert both == "".join(part.text for part in (*first, *second))
    assert both.parts == Message((*first, *second)).parts
    for again in (copy.deepcopy(both), pickle.loads(pickle.dumps(both)), MESSAGE.read(MESSAGE.written(both))):
        assert again == both
    typed = [part for part in both.parts if part.kind is not PartKind.TEXT]
    if typed:
        again = MESSAGE.read(MESSAGE.written(both))
        assert isinstance(again, Message)
        assert [part for part in again.parts if part.kind is not PartKind.TEXT] == typed


def test_parts_that_are_not_the_message_are_ignored() -> None:
    written = MESSAGE.written(CUT)
    assert isinstance(written, dict)
    row = written | {"message": "Something else"}
    assert MESSAGE.read(row) == "Something else"
    assert not isinstance(MESSAGE.read(row), Message)
