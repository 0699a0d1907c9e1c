"""One kind of document: a class and the name of its JSON Schema; and how the values that many documents share stand in JSON."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from reconciler.collector import pause_collector
from reconciler.documents.codec import Codec, Keyed, row
from reconciler.documents.kinds import ENTITY, TEXT, FieldError, JsonKind, UnlikeError, nullable, parse, table
from reconciler.errors import FileAccessError, UnusableDocumentError
from reconciler.formats import FORMAT_VERSION, Json, document_text
from reconciler.model import (
    OTHER,
    BucketName,
    Change,
    ClientName,
    ClusterFailure,
    ClusterIdentity,
    ClusterTotal,
    Effect,
    Entity,
    Finding,
    GroupPart,
    GuardResult,
    JudgedQuotas,
    KeyChange,
    KnownClient,
    LeaderSpread,
    Message,
    MessagePart,
    MetricSamples,
    Observed,
    PartKind,
    Proportional,
    Quotas,
    RateSeries,
    Related,
    UnjudgedChange,
    ValueExpiry,
    escaped,
    in_canonical_order,
)


def whole_message(text: str) -> str:
    """Return the sentence."""
    return str.__str__(text)


def typed_parts(text: str) -> tuple[MessagePart, ...] | None:
    """The sentence in parts of one kind each; their texts joined are the message. Absent when all of it is text."""
    is_typed = isinstance(text, Message) and any(part.kind is not PartKind.TEXT for part in text.parts)
    return text.parts if isinstance(text, Message) and is_typed else None


def message_of(*, message: str, parts: tuple[MessagePart, ...] | None = None) -> str:
    """Parts whose texts joined are not the message are ignored."""
    whole = message if parts is None else Message(parts)
    return whole if whole == message else message


def value_that_follows(expiry: ValueExpiry) -> float | None:
    """The value that follows the expiry, for each broker, before it. Absent when none does."""
    return None if expiry.expired else expiry.other


def value_that_expired(expiry: ValueExpiry) -> float | None:
    """The value that expired, for each broker, after the expiry. Absent when there was none."""
    return expiry.other if expiry.expired else None


def expiry_of(*, at: datetime.datetime, expired: bool, then: float | None = None, was: float | None = None) -> ValueExpiry:
    """The value on the side where it stands."""
    return ValueExpiry(at=at, expired=expired, other=was if expired else then)


def share_over_limit(metrics: MetricSamples) -> tuple[float, ...] | None:
    """The share of all moments above the limit: the ends of the 95 % interval. ``None``: only the highest sample is known."""
    return None if metrics.over is None else (metrics.share_low, metrics.share_high)


def metrics_of(*, share_over: tuple[float, ...] | None, **given: Any) -> MetricSamples:
    """Make samples with the share of moments above the limit."""
    low, high = share_over or (0.0, 1.0)
    return MetricSamples(share_low=low, share_high=high, **given)


def is_failure(failure: ClusterFailure) -> bool:
    """True when the run failed for this cluster. False: it was skipped on purpose."""
    return not failure.skipped


def _client_name(_: Codec) -> JsonKind:
    optional = nullable(TEXT)
    return dataclasses.replace(
        optional,
        read=lambda data: OTHER if optional.read(data) is None else data,
        write=lambda name: None if name is OTHER else name,
    )


def _bucket_name(_: Codec) -> JsonKind:
    names = table(TEXT)

    def write(bucket: BucketName) -> Json:
        tags = {"user": bucket.user, "client-id": bucket.client_id, **dict(bucket.other)}
        return {tag: name for tag, name in tags.items() if name}

    def read(data: Any) -> BucketName:
        tags = names.read(data)
        user, client_id = tags.pop("user", ""), tags.pop("client-id", "")
        return BucketName(user=user, client_id=client_id, other=tuple(sorted(tags.items())))

    description = "Tags of the quota group to their values: user, client-id or ip, or those of a quota callback."
    schema = {"define": "bucket", "description": description, **names.schema}
    return dataclasses.replace(names, schema=schema, read=read, write=write)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityQuotas:
    """One entity with its quotas."""

    entity: Entity
    """Entity type to name. ``None`` is the default entity of that type."""
    quotas: Quotas
    """Quota key to value, per broker."""


def _new(entity: Entity, state: Mapping[Entity, Quotas]) -> Entity:
    if entity in state:
        raise FieldError("", f"has the same entity as an earlier one: {entity}")
    return entity


def _state(codec: Codec) -> JsonKind:
    members, quotas = codec.row(EntityQuotas), codec.kind(Quotas)

    def write(state: Mapping[Entity, Quotas]) -> Json:
        return [{"entity": ENTITY.written(each), "quotas": quotas.written(state[each])} for each in in_canonical_order(state)]

    def read(data: Any) -> dict[Entity, Quotas]:
        if type(data) is not list:
            raise UnlikeError("a list", data)
        state: dict[Entity, Quotas] = {}
        try:
            for each in data:
                given = members.arguments(each)
                state[_new(given["entity"], state)] = given["quotas"]
        except FieldError as error:
            raise error.below(f"[{len(state)}]") from error.__cause__
        return state

    return JsonKind(wanted="a list", schema={"type": "array", "items": {"row": members}}, read=read, write=write)


def _quotas(codec: Codec) -> JsonKind:
    values = table(codec.kind(float))
    return dataclasses.replace(values, write=lambda quotas: values.written(dict(sorted(quotas.items()))))


def _entities(codec: Codec) -> JsonKind:
    rows = codec.kind(tuple[Entity, ...])
    return dataclasses.replace(
        rows, read=lambda data: frozenset(rows.read(data)), write=lambda given: rows.written(in_canonical_order(given))
    )


VALUES: Final = Codec(
    rows={
        Change: row("entity action keys note?", keys=Keyed("key")),
        ClusterFailure: row("cluster errored skipped failure_reason message findings", errored=is_failure),
        ClusterIdentity: row("name id kafka_version quota_callback?"),
        ClusterTotal: row("clusterTotal=value perBroker=per_broker? brokers?"),
        Effect: row("client key before after direction! as_before?"),
        Finding: row("id severity *message *span? related entity? key? as_before?", message=Message),
        GroupPart: row("group members? limit"),
        GuardResult: row("id status measured limit set_in *message advice? entities?", message=Message),
        JudgedQuotas: row("changed judged without_traffic too_little"),
        KeyChange: row("before after reason source profile? declared=unit? brokers_before? expiry? as_before?"),
        KnownClient: row("user client-id=client_id"),
        LeaderSpread: row("partitions leaderless absent"),
        Message: row("message parts?", build=message_of, message=whole_message, parts=typed_parts),
        MessagePart: row("kind text value? *span?"),
        MetricSamples: row(
            "samples samples_over=over samples_over_before=over_before share_over highest every_s window_s moments "
            "throttled_then factor",
            share_over=share_over_limit,
            build=metrics_of,
        ),
        Observed: row("at from=origin"),
        Proportional: row("proportional=value topics? leaders? partitions?"),
        RateSeries: row("from=start step_s rate upper over possible over_before recorded"),
        Related: row("*span message"),
        UnjudgedChange: row("entity key limit_before=before limit_after=after reason"),
        ValueExpiry: row("at expired then? was?", build=expiry_of, then=value_that_follows, was=value_that_expired),
    },
    kinds={
        BucketName: _bucket_name,
        ClientName: _client_name,
        Mapping[Entity, Quotas]: _state,
        Quotas: _quotas,
        frozenset[Entity]: _entities,
    },
)
"""Of values that need no other form in some document."""


T = TypeVar("T")


class ForeignVersionError(ValueError):
    """A document of another major version."""

    def __init__(self, version: str, supported: str) -> None:
        super().__init__(f"of format {escaped(version)}, and this version reads format {supported}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document(Generic[T]):
    """``schemas/NAME.v1.schema.json`` is made of this by ``make format``: the title, and the docstrings of classes and fields."""

    cls: type[T]
    name: str
    title: str
    codec: Codec = VALUES
    called: str = "a document"
    """For messages, with the command that writes one: ``a plan written by 'plan --format json'``."""
    check: Callable[[T], None] | None = None
    """Refuses a value whose members do not fit each other. Raises ``FieldError``."""

    def write(self, value: T) -> dict[str, Json]:
        """The data of a value; equal values give equal documents."""
        return {"format_version": FORMAT_VERSION, **self.codec.row(self.cls).write(value)}

    def text(self, value: T) -> str:
        """The document for a file or for stdout."""
        return document_text(self.write(value))

    def build(self, data: Any) -> T:
        """The value of data. Raises ``ForeignVersionError``, and ``FieldError`` that names the field."""
        try:
            _require_version(data)
            value: T = self.codec.row(self.cls).read(data)
            if self.check is not None:
                self.check(value)
        except FieldError as error:
            raise (error if error.path else error.below("the document")) from error.__cause__
        return value

    def read(self, text: str | bytes, *, name: str) -> T:
        """The value of a text; ``name`` is the file's.

        Raises ``UnusableDocumentError`` for a document of another major version, and ``FileAccessError`` for any other text.
        """
        try:
            with pause_collector():
                return self.build(parse(text))
        except ForeignVersionError as error:
            raise UnusableDocumentError(f"{name} is {self.called.partition(' written by')[0]} {error}") from error
        except (ValueError, RecursionError) as error:
            raise FileAccessError(f"{name} is not {self.called}: {error}") from error


def _require_version(data: Any) -> None:
    if type(data) is not dict:
        raise UnlikeError("an object", data)
    if "format_version" not in data:
        raise FieldError("", "lacks 'format_version'")
    try:
        version = TEXT.read(data["format_version"])
    except FieldError as error:
        raise error.below("format_version") from None
    supported = FORMAT_VERSION.partition(".")[0]
    if version.partition(".")[0] != supported:
        raise ForeignVersionError(version, supported)
