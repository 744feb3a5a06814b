"""What `topstory features apply --json` prints."""

import msgspec


class AppliedReport(msgspec.Struct, frozen=True):
    """The log that was written with features."""

    events: int
    users: int
    articles: int
    dimension: int
    article_features: int
    unknown: dict[str, int]  # by field: categories that the model does not know, and ignored
