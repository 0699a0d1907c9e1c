"""kafka-configs: scripts that call it, and what ``kafka-configs --describe`` prints, by any Kafka since 0.10.1.

``Quota configs for user-principal 'a', client-id 'b' are producer_byte_rate=1024.0`` since 2.6, ``Configs for ...`` before. Names
are printed as they are, so a name with quotes can make a line that reads in two ways; such a line is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from reconciler.importing.config_command import ConfigCommand, RefusedCommandError, read_config_alteration
from reconciler.importing.import_result import Gatherer, ImportResult, read_value
from reconciler.importing.shell import Command, ShellSyntaxError, Word, commands
from reconciler.model import DEFAULT, Entity, EntityName, Span, compose, key_part
from reconciler.text import shown_part

_STARTS: Final = ("Quota configs for ", "Configs for ")
_OF_QUOTAS: Final = ("user-principal", "client-id", "ip ", "the default ", "default ")
_SEEMS_DESCRIBED: Final = re.compile(r"Quota configs for |Configs for (?:the )?(?:default|user-principal|client-id|ip) ")
_SCRAM: Final = re.compile(r"SCRAM credential configs for user-principal ")
_CREDENTIAL_FIELDS: Final = frozenset({"SCRAM-SHA-256", "SCRAM-SHA-512", "salt", "stored_key", "server_key", "iterations"})
"""What clusters in ZooKeeper show beside quotas."""

_PART: Final = {"user-principal": "user", "client-id": "client-id", "ip": "ip"}
_WORDS: Final = "|".join(_PART)
_SEPARATOR: Final = re.compile(
    r", (?=(?:(?:the )?default (?:user-principal|client-id|ip)$)|(?:(?:user-principal|client-id|ip) '))"
)
_NAMED: Final = re.compile(rf"(?P<type>{_WORDS}) '(?P<name>.*)'", re.DOTALL)
_DEFAULTED: Final = re.compile(rf"(?:the )?default (?P<type>{_WORDS})")

_NAME: Final = re.compile(r"(?:.*/)?kafka-configs(?:\.sh)?")
_MENTION: Final = re.compile(r"kafka-configs|--add-config|--delete-config")
_ALTERS: Final = re.compile(r"--add-config|--delete-config")
_CREDENTIALS: Final = re.compile(r"SCRAM-SHA-(?:256|512)")


def is_description(text: str) -> bool:
    """True when a file has a line as ``--describe`` prints it; it is then no script."""
    return any(_split(line) or _SCRAM.match(line) for line in text.split("\n"))


def _split(line: str) -> tuple[str, str] | None:
    """The entity and the keys of a line about quotas. Only a name can contain the word ``are``, so the last one is the verb."""
    line = line.strip()
    start = next((start for start in _STARTS if line.startswith(start)), None)
    if start is None:
        return None
    entity, verb, keys = line[len(start) :].rpartition(" are")
    if not verb or keys[:1] not in ("", " ") or not entity.startswith(_OF_QUOTAS):
        return None
    return entity, keys


def read_description(text: str, out: Gatherer) -> None:
    """Every described entity; other lines are passed over, but for those that seem to be cut or to contain commands."""
    seen: dict[Entity, tuple[dict[str, float], Span]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        span = out.at(number)
        parts = _split(line)
        if parts is None:
            _other_line(line, span, out)
            continue
        entities = list(_readings(parts[0]))
        if len(entities) != 1:
            how = "reads in two ways" if entities else "names no entity that can have a quota"
            out.refuse(
                "import-ambiguous",
                compose("{name} {how}. Write its manifest by hand", name=shown_part(parts[0]), how=how),
                span,
            )
            continue
        quotas = _quotas(parts[1], entities[0], span, out)
        if quotas is None:
            continue
        earlier = seen.get(entities[0])
        if earlier is not None and earlier[0] == quotas:
            continue
        seen[entities[0]] = (quotas, span)
        out.add(entities[0], quotas, span)


def _other_line(line: str, span: Span, out: Gatherer) -> None:
    if _SCRAM.match(line):
        out.refuse("import-left-out", "credentials are left out: they are not quotas", span)
    elif "--add-config" in line or "--delete-config" in line:
        out.refuse("import-ambiguous", "a command between lines that --describe printed: import the two by themselves", span)
    elif _SEEMS_DESCRIBED.search(line):
        out.refuse(
            "import-syntax",
            compose(
                "this line is cut, has something before it, or a name in it is broken over lines: {line}", line=shown_part(line)
            ),
            span,
        )


def _readings(text: str) -> Iterator[Entity]:
    """Every entity that is printed as this text: a pair, split at any joint of two; else one name that contains the joint."""
    joints = list(_SEPARATOR.finditer(text))
    pairs = [entity for at in joints if (entity := _entity_of(text[: at.start()], text[at.end() :])) is not None]
    whole = _entity_of(text)
    yield from pairs or ([whole] if whole is not None else [])


def _entity_of(*parts: str) -> Entity | None:
    names: dict[str, EntityName] = {}
    for part in parts:
        defaulted, named = _DEFAULTED.fullmatch(part), _NAMED.fullmatch(part)
        if defaulted:
            names[_PART[defaulted["type"]]] = DEFAULT
        elif named and named["name"]:
            names[_PART[named["type"]]] = named["name"]
    return Entity.of(names) if len(names) == len(parts) and _in_order(names) else None


def _in_order(names: dict[str, EntityName]) -> bool:
    return list(names) in (["user"], ["client-id"], ["ip"], ["user", "client-id"])


def _quotas(text: str, entity: Entity, span: Span, out: Gatherer) -> dict[str, float] | None:
    quotas: dict[str, float] = {}
    for part in (text_part.strip() for text_part in text.split(",")):
        key, _, value = part.partition("=")
        if not part or key in _CREDENTIAL_FIELDS:
            continue
        number = read_value(out, entity, key, value, span)
        if number is None:
            return None
        quotas[key] = number
    return quotas


def read_kafka_configs(content: bytes, file: str) -> ImportResult:
    """The quotas of one script or of one printed description. Never raises."""
    out = Gatherer(file)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        out.refuse("invalid-utf8", "this line is not UTF-8. Save the file as UTF-8", out.at(line))
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
        self.servers: dict[Entity, tuple[str, str]] = {}
        self.first_servers: dict[str, str] = {}
        """By the option that names a server."""
        self.mentioned: set[str] = set()

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
            self.refuse("import-template", "what xargs adds to this command is not known. Write the commands out", words[at])
            return
        try:
            alteration = read_config_alteration(words[at + 1 :])
        except RefusedCommandError as refused:
            self.refuse(refused.rule_id, str(refused), refused.word)
            if refused.entity is not None:
                self.unknown.add(refused.entity)
            return
        if alteration is None:
            return
        if command.conditional:
            message = (
                "this command is in a loop, a condition or a function, or after a test or the end, so it may run never or often. "
                "Write it out, or import the output of --describe"
            )
            self.unknown.add(alteration.entity)
            self.refuse("import-template", message, words[at])
            return
        self.alter(alteration)

    def other(self, words: tuple[Word, ...]) -> None:
        """A command that is not kafka-configs and yet seems to call it."""
        word = next((word for word in words if _MENTION.search(word.text)), None)
        if word is not None and "\n" in word.text and not _ALTERS.search(word.text):
            return  # a text that only mentions the command
        if word is not None:
            message = "this seems to call kafka-configs in a way that is not read (a variable, an alias, a quoted command)"
            self.refuse(
                "import-template",
                compose("{message}. Write the command out: {word}", message=message, word=shown_part(word.text)),
                word,
            )

    def alter(self, alteration: ConfigCommand) -> None:
        entity, place = alteration.entity, alteration.place
        span = self.out.at(place.line, place.column)
        if not self.same_cluster(alteration):
            self.unknown.add(entity)
            return
        known: dict[str, float] = {}
        for key, text in alteration.add:
            if _CREDENTIALS.fullmatch(key):
                self.out.refuse(
                    "import-left-out",
                    compose("the {key} credential of {entity} is left out: it is not a quota", key=key_part(key), entity=entity),
                    span,
                )
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
        """False for an entity that two servers get: then they are two clusters, or one of the commands has no effect."""
        given, entity = alteration.server, alteration.entity
        if given is None:
            return True
        earlier = self.servers.setdefault(entity, given)
        if given[0] == earlier[0] and given != earlier:
            message = compose(
                "this command alters {entity} through {server}, and an earlier one through {earlier}. If these are two "
                "clusters, split the script and import each part by itself",
                entity=entity,
                server=shown_part(given[1]),
                earlier=shown_part(earlier[1]),
            )
            self.refuse("import-ambiguous", message, alteration.place)
            return False
        first = self.first_servers.setdefault(given[0], given[1])
        if given[1] not in (first, *self.mentioned):
            self.mentioned.add(given[1])
            message = compose(
                "this command is for {server} and an earlier one for {earlier}. They are converted as one cluster. If they are "
                "two, split the script and import each part by itself",
                server=shown_part(given[1]),
                earlier=shown_part(first),
            )
            self.refuse("import-several-servers", message, alteration.place)
        return True

    def refuse(self, rule_id: str, message: str, word: Word) -> None:
        self.out.refuse(rule_id, message, self.out.at(word.line, word.column))
