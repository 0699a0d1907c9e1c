"""Kafka's own ``kafka-configs``: scripts that call it, and what its ``--describe`` prints.

A script is followed in its order: a later command changes what an earlier one set. What may run never, or many times, is refused.
"""

from __future__ import annotations

import re
from typing import Final

from reconciler.formats import shown
from reconciler.importing.config_command import ConfigCommand, RefusedCommandError, read_alteration
from reconciler.importing.described import is_description, read_description
from reconciler.importing.found import Found, Gatherer
from reconciler.importing.quota_values import read_value
from reconciler.importing.shell_commands import Command, commands
from reconciler.importing.shell_words import ShellSyntaxError, Word
from reconciler.model import Entity, Span

_NAME: Final = re.compile(r"(?:.*/)?kafka-configs(?:\.sh)?")
_MENTION: Final = re.compile(r"kafka-configs|--add-config|--delete-config")
_ALTERS: Final = re.compile(r"--add-config|--delete-config")
_CREDENTIALS: Final = re.compile(r"SCRAM-SHA-(?:256|512)")


def read_kafka_configs(content: bytes, file: str) -> Found:
    """The quotas of one script or of one printed description. Never raises."""
    out = Gatherer(file)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        out.refuse("invalid-utf8", "this line is not UTF-8; save the file as UTF-8", out.at(line))
        return out.found()
    if is_description(text):
        read_description(text, out)
    else:
        _Script(out).read(text)
    return out.found()


class _Script:
    """What the commands of a script come to, entity by entity."""

    def __init__(self, out: Gatherer) -> None:
        self.out = out
        self.state: dict[Entity, dict[str, float]] = {}
        self.places: dict[Entity, Span] = {}
        self.unknown: set[Entity] = set()
        self.server: tuple[str, str] | None = None

    def read(self, text: str) -> None:
        try:
            for command in commands(text):
                self.command(command)
        except ShellSyntaxError as error:
            self.out.refuse("import-syntax", str(error), self.out.at(error.line, error.column))
            return
        for entity, quotas in self.state.items():
            if entity not in self.unknown:
                self.out.add(entity, quotas, self.places[entity])

    def command(self, command: Command) -> None:
        words = command.words
        if words[0].text in ("echo", "printf"):
            return
        at = next((index for index, word in enumerate(words) if _NAME.fullmatch(word.text)), None)
        if at is None:
            self.other(words)
            return
        if any(word.text.rpartition("/")[2] in ("xargs", "parallel") for word in words[:at]):
            self.refuse("import-template", "what xargs adds to this command is not known; write the commands out", words[at])
            return
        try:
            alteration = read_alteration(words[at + 1 :])
        except RefusedCommandError as refused:
            self.refuse(refused.rule_id, str(refused), refused.word)
            if refused.entity is not None:
                self.unknown.add(refused.entity)
            return
        if alteration is None:
            return
        if command.conditional:
            message = (
                "this command is in a loop, a condition or a function, or after a test or the end, so it may run never or often; "
                "write it out, or import what --describe prints"
            )
            self.unknown.add(alteration.entity)
            self.refuse("import-template", message, words[at])
            return
        self.alter(alteration)

    def other(self, words: tuple[Word, ...]) -> None:
        """A command that is not kafka-configs and yet seems to call it."""
        word = next((one for one in words if _MENTION.search(one.text)), None)
        if word is not None and "\n" in word.text and not _ALTERS.search(word.text):
            return  # a text that only mentions the command
        if word is not None:
            message = "this seems to call kafka-configs in a way that is not read (a variable, an alias, a quoted command)"
            self.refuse("import-template", f"{message}; write the command out: {shown(word.text)}", word)

    def alter(self, alteration: ConfigCommand) -> None:
        entity, place = alteration.entity, alteration.place
        span = self.out.at(place.line, place.column)
        if not self.same_cluster(alteration):
            self.unknown.add(entity)
            return
        known: dict[str, float] = {}
        for key, text in alteration.add:
            if _CREDENTIALS.fullmatch(key):
                self.out.refuse("import-left-out", f"the {key} credential of {entity} is left out: it is no quota", span)
                continue
            value = read_value(self.out, entity, key, text, span)
            if value is None:
                self.unknown.add(entity)
                return
            known[key] = value
        if not known and not alteration.delete:
            return
        quotas = self.state.setdefault(entity, {})
        # As kafka-configs does it: a key in both lists is set.
        for key in alteration.delete:
            quotas.pop(key, None)
        quotas.update(known)
        self.places[entity] = span

    def same_cluster(self, alteration: ConfigCommand) -> bool:
        given = alteration.server
        if given is None or self.server is None or given[0] != self.server[0]:
            self.server = self.server or given
            return True
        if given == self.server:
            return True
        message = (
            f"this command is for {shown(given[1])} and an earlier one for {shown(self.server[1])}; "
            "if these are two clusters, split the script and import each part by itself"
        )
        self.refuse("import-ambiguous", message, alteration.place)
        return False

    def refuse(self, rule_id: str, message: str, word: Word) -> None:
        self.out.refuse(rule_id, message, self.out.at(word.line, word.column))
