"""Names of buckets as tags in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.model import BucketName, EntityType

_TAGS: Final = (EntityType.USER.value, EntityType.CLIENT_ID.value)


def bucket_tags(bucket: BucketName) -> dict[str, str]:
    """Kafka's metric tags of a bucket, or those of a quota callback; absent tags are absent."""
    tags = {"user": bucket.user, "client-id": bucket.client_id, **dict(bucket.other)}
    return {tag: name for tag, name in tags.items() if name}


def bucket_from_tags(tags: Mapping[str, str]) -> BucketName:
    """The inverse of ``bucket_tags``."""
    user, client_id = (tags.get(tag, "") for tag in _TAGS)
    return BucketName(user=user, client_id=client_id, other=tuple(sorted((t, n) for t, n in tags.items() if t not in _TAGS)))
