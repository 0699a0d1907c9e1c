"""The table of a comment in Markdown: a sign, the quota, its limit, and the result of the backtest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from reconciler.features.pull_requests.comment_rows import ChangeRow, RowState
from reconciler.model import (
    DEFAULT,
    BucketName,
    BucketVerdict,
    Entity,
    EntityName,
    EntityType,
    GroupRows,
    NotJudged,
    QuotaKey,
    Verdict,
    display_name,
)
from reconciler.render import RepositoryLinks, code, has_only_metrics, in_cell, over_text, peak_text, prose, who
from reconciler.text import amount, factor, percent_text, rate

_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_FAR: Final = 10.0
"""From this factor on the change of a value is printed: a wrong unit is the mistake that reviewers must catch."""
_SHORT_REASON: Final = 60
_WORTH_SAYING: Final = 0.01
"""A share of the time over the limit of today that is worth a word."""
_NAME: Final = 400
"""A name with more characters than this is cut to as many in its cell."""
_SHORT_KEYS: Final = {
    QuotaKey.PRODUCER_BYTE_RATE.value: "producer",
    QuotaKey.CONSUMER_BYTE_RATE.value: "consumer",
    QuotaKey.REQUEST_PERCENTAGE.value: "request",
    QuotaKey.CONTROLLER_MUTATION_RATE.value: "mutation",
    QuotaKey.CONNECTION_CREATION_RATE.value: "connection",
}


def row_markdown(row: ChangeRow, links: RepositoryLinks, *, limit: int, checked: bool) -> str:
    """One line of the table: sign, quota, limit, and the result where a backtest ran (``checked``)."""
    words, sign = row.sign(checked=checked)
    cells = [
        f'<span role="img" aria-label="{words}">{sign}</span>',
        f"{_whose(row, links, limit)} {in_cell(key_markdown(row.key, limit))}",
        in_cell(_limit(row)),
    ]
    cells += [in_cell(_result(row))] if checked else []
    return "| " + " | ".join(cells) + " |"


def table_head(history: str | None) -> tuple[str, str]:
    """The head of each table; ``history``: the title of the last column, in Markdown, where a backtest ran."""
    titles = ["", "Quota", "Limit per broker", *([] if history is None else [history])]
    return f"| {' | '.join(titles)} |", "| " + " | ".join("---" for _ in titles) + " |"


def _whose(row: ChangeRow, links: RepositoryLinks, limit: int) -> str:
    if row.entity is None:
        return in_cell(group_markdown(row.groups[0].worst, limit)) if row.groups else ""
    text = in_cell(entity_markdown(row.entity, limit))
    return links.linked(text, row.source)


def entity_markdown(entity: Entity, limit: int) -> str:
    """```payments-api` / `settlement```: a user by its name alone, everything else with its type."""
    return " / ".join(code(_part(kind, entity), limit=_name_limit(entity.name(kind), limit)) for kind in entity.types)


def _name_limit(name: EntityName | None, limit: int) -> int:
    """Less for names that are longer than Kafka's own tools make them; the escaped form of a shorter one is shown whole."""
    return min(limit, _NAME) if isinstance(name, str) and len(name) > _NAME else limit


def group_markdown(bucket_verdict: BucketVerdict, limit: int) -> str:
    """A quota group as the entity that its tags are, where they are one."""
    if bucket_verdict.undecided:
        return code(who(bucket_verdict.name, undecided=True), limit=limit)
    return group_name_markdown(bucket_verdict.name, limit)


def group_name_markdown(name: BucketName, limit: int) -> str:
    """The same by the tags alone."""
    names = {EntityType.USER: name.user, EntityType.CLIENT_ID: name.client_id}
    tags: dict[str, str] = {kind: text for kind, text in names.items() if text}
    return entity_markdown(Entity.of(tags), limit) if tags and not name.other else code(who(name), limit=limit)


def _part(kind: str, entity: Entity) -> str:
    name = entity.name(kind)
    text = display_name(DEFAULT if name is None else name)
    by_name = kind == EntityType.USER or entity.types == (EntityType.USER, EntityType.CLIENT_ID)
    return text if by_name and name is not DEFAULT and "=" not in text else f"{kind}={text}"


def key_markdown(key: str, limit: int) -> str:
    """``producer`` for Kafka's own keys, any other as it is."""
    return _SHORT_KEYS.get(key) or code(key, limit=limit)


def amount_markdown(key: str, value: float | None) -> str:
    """An amount that breaks before its exact bytes only."""
    rounded, bracket, exact = amount(key, value).partition(" (")
    text = rounded.replace(" ", _NO_BREAK)
    return f"{text} ({exact.replace(' ', _NO_BREAK)}" if bracket else text


_PROFILE: Final = 60


def _limit(row: ChangeRow) -> str:
    """``8 → **2 MiB/s**``; ``2 MiB/s → *removed, then 1 MiB/s*``."""
    if row.state is RowState.KEPT:
        return f"{amount_markdown(row.key, row.after)}: stays ({code('prune: never')})"
    before, after = _before(row), _after(row)
    before = _without_unit(before, after.removeprefix("**").removesuffix("**"))
    return f"{before}{_NO_BREAK}→ {after}{_remarks(row)}"


def _without_unit(amount_text: str, beside: str) -> str:
    """The number alone of an amount whose unit stands beside it."""
    number, _, unit = amount_text.partition(_NO_BREAK)
    return number if unit and unit == beside.partition(_NO_BREAK)[2] else amount_text


def _before(row: ChangeRow) -> str:
    if not row.before:
        return "?"
    none = "none" if row.entity is not None else "unlimited"
    shown = [none if limit is None else amount_markdown(row.key, limit) for limit in row.before[:3]]
    more = len(row.before) - len(shown)
    return " or ".join(shown) + (f" and {more} more" if more else "")


def _after(row: ChangeRow) -> str:
    if row.groups and row.groups[0].worst.undecided and row.entity is None:
        return "?"
    if row.after is not None:
        return f"**{amount_markdown(row.key, row.after)}**"
    then = row.groups[0].worst.limits.after if row.groups else None
    if row.removed and then is not None:
        return f"*removed, then {amount_markdown(row.key, then)}*"
    return "*removed*" if row.removed else "*unlimited*"


def _remarks(row: ChangeRow) -> str:
    """A factor that only a wrong unit has, the profile that sets the limit, and what it was computed from."""
    if row.after is None:
        return ""
    before = row.before[0] if len(row.before) == 1 else None
    far = before and 0 < before < math.inf and not 1 / _FAR < row.after / before < _FAR
    words = f" {factor(before, row.after)}" if far else ""
    words += "" if row.profile is None else f" (profile {code(row.profile, limit=_PROFILE)})"
    return words + "".join(f", {sentence}" for sentence in row.declared)


def _result(row: ChangeRow) -> str:
    match row.state:
        case RowState.KEPT:
            return ""
        case RowState.NOT_CHECKED | RowState.NO_CLIENT:
            overridden = row.unjudged is not None and row.unjudged.reason is NotJudged.OVERRIDDEN
            return "not checked: overridden" if overridden else row.state.words
    if not row.groups:
        return "fails a rule: not checked"
    return _of_group(row.groups[0], row.after) if len(row.groups) == 1 else _of_groups(row.groups)


def _of_groups(groups: Sequence[GroupRows]) -> str:
    worst = groups[0].verdict
    same = sum(group.verdict is worst for group in groups)
    name = group_markdown(groups[0].worst, _SHORT_REASON)
    if worst is Verdict.CLEAR:
        return f"clear, {len(groups):,} quota groups"
    return f"{worst.value} in {same:,} of {len(groups):,} quota groups, worst {name}"


def _of_group(group: GroupRows, after: float | None) -> str:
    worst = group.worst
    before = "needs at least" if worst.recorded.censored else "safe from"
    safe = ""
    if worst.advice.safe is not None:
        limit = amount_markdown(worst.key, after) if after is not None else ""
        safe = f", {before} {_without_unit(unbroken(rate(worst.key, worst.advice.safe)), limit)}"
    if worst.metrics is not None and has_only_metrics(worst) and group.verdict is not Verdict.CLEAR:
        value = worst.advice.recommended
        advised = "" if value is None else f", recommended {amount_markdown(worst.key, value)}"
        return f"{group.verdict.value}: {unbroken(over_text(group))}{advised}"
    match group.verdict:
        case Verdict.THROTTLED | Verdict.POSSIBLE:
            return f"{over_markdown(group)}{safe}"
        case Verdict.INCONCLUSIVE:
            short = worst.reason is not None and len(worst.reason) <= _SHORT_REASON
            return f"inconclusive: {prose(worst.reason)}" if short and worst.reason else "inconclusive"
    return f"clear, peak {unbroken(peak_text(group.highest))}"


def over_markdown(group: GroupRows) -> str:
    """``over 49 %, today 12 %``: the share of the time over the limit, and today's where it is large."""
    time = group.time_over
    before = time.before_share
    today = f", today {unbroken(percent_text(before))}" if before >= _WORTH_SAYING else ""
    if time.seconds and not has_only_metrics(group.worst):
        maybe = "maybe " if group.verdict is Verdict.POSSIBLE else ""
        return f"{maybe}over {unbroken(percent_text(time.share))}{today}"
    words = unbroken(over_text(group)).replace(f"{_NO_BREAK}(", " (")
    return f"{'throttled ' if group.verdict is Verdict.THROTTLED else ''}{words}{today}"


def unbroken(words: str) -> str:
    """Words that stay on one line."""
    return words.replace(" ", _NO_BREAK)
