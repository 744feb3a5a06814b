"""A planned change of a pool's policy while its service is stopped: with its feature model, too."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np

from topstory.policies import Policy
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import PolicyComparison
from topstory.serving.config.feature_model import events_of, load_feature_model
from topstory.serving.config.schema import Config
from topstory.serving.journal.records import ArticleFacts, Entry, Promoted
from topstory.serving.state.policy_file import policy_in
from topstory.serving.state.pool import Pool
from topstory.serving.state.recovery.data_folder import DataFolder, open_folder
from topstory.serving.upkeep.policy_comparison import compare
from topstory.serving.upkeep.promotion import check_candidate


class PromotionReport(msgspec.Struct, frozen=True):
    """What became of it."""

    pool: str
    record: int | None  # None: nothing was changed
    feature_model: str | None  # identity of the one to serve with from now on; None: as before
    comparison: PolicyComparison | None  # None: with another feature model there is none


def promote_stopped(
    config: Config,
    pools: Sequence[str],
    content: bytes | None,
    features: Path | None = None,
    note: str = "",
    dry_run: bool = False,
) -> list[PromotionReport]:
    """Append the change to the journal; None: back to the policy before. ValueError if refused.

    All pools change, or none. With other features they must be all pools of the service, and the
    policy must have been trained with them, and know the pools' articles: their features come from
    it. The comparison is left out: the journal's contexts are of the old ones.
    """
    if not Path(config.data).is_dir():
        raise FileNotFoundError(f"{config.data}: there is no data folder here")
    with closing(open_folder(config)) as folder:
        for pool in pools:
            if pool not in folder.state.pools:
                listed = ", ".join(folder.state.pools)
                raise ValueError(f"there is no pool {pool!r}; there are {listed}")
        if features is not None:
            _check_features(folder, pools, features)
        try:
            planned = [_planned(folder, pool, content, features, note) for pool in pools]
        except ApiError as error:
            raise ValueError(error.message) from None
        last, _ = folder.journal.last()
        numbers: list[int | None] = [None] * len(planned)
        if not dry_run:
            at = folder.clock.now()
            entries = [
                Entry(number, at, record) for number, (record, _) in enumerate(planned, last + 1)
            ]
            folder.journal.append(entries)
            folder.head_file.write(folder.journal.head)
            numbers = [entry.number for entry in entries]
    return [
        PromotionReport(record.pool, number, record.feature_model, comparison)
        for number, (record, comparison) in zip(numbers, planned, strict=True)
    ]


def _planned(
    folder: DataFolder, name: str, content: bytes | None, features: Path | None, note: str
) -> tuple[Promoted, PolicyComparison | None]:
    """The record, once all is checked, and the comparison."""
    pool = folder.state.pools[name]
    policy = pool.previous if content is None else policy_in(content)
    if policy is None:
        raise ValueError(f"pool {name!r} has had no other policy")
    identity: str | None = None if folder.features is None else folder.features.identity
    articles: tuple[ArticleFacts, ...] = ()
    if features is not None:
        identity, articles = _with_features(folder, name, policy, features)
        pool = _described(pool, articles)
    check_candidate(policy, pool, folder.config, identity)
    new = None if features is None else identity
    record = Promoted(name, content, note=note, feature_model=new, articles=articles)
    if features is not None:
        return record, None
    other = Pool(name, policy.copy(), pool.dimension, event=pool.event)
    for article in pool.articles.values():
        other.place(article.facts, article.since)
    known = frozenset(pool.articles)
    return record, compare(folder.journal, name, pool.policy.copy(), other.policy, known)


def _check_features(folder: DataFolder, pools: Sequence[str], path: Path) -> None:
    """Raise ValueError if the service cannot change to this feature model with these pools."""
    others = [
        each for each in folder.state.pools if each not in pools and each in folder.config.pools
    ]
    if others:
        named = " ".join(f"--pool {each}" for each in (*pools, *others))
        raise ValueError(
            f"--features: {', '.join(others)} use the service's feature model, too: change all of "
            f"them at once ({named}), with a policy that was trained on all of their articles"
        )
    model = load_feature_model(str(path))
    event, held = events_of(model), folder.state.config.get("event")
    if (None if event is None else event.described()) != held:
        raise ValueError(
            f"--features: {path} has other features of the event than the service's contexts: "
            "begin another data folder"
        )
    length = len(np.asarray(model.user({}))) + (0 if event is None else len(event.columns))
    if length != folder.config.context:
        raise ValueError(
            f"--features: {path} makes contexts of {length} numbers, but the service has "
            f"{folder.config.context}: begin another data folder"
        )


def _with_features(
    folder: DataFolder, name: str, policy: Policy, path: Path
) -> tuple[str, tuple[ArticleFacts, ...]]:
    """The new model's identity, and the pool's articles with the features that it makes."""
    model = load_feature_model(str(path))
    known = _article_features(policy)
    facts = [article.facts for article in folder.state.pools[name].articles.values()]
    unknown = [each.id for each in facts if each.features is not None and each.id not in known]
    if unknown:
        raise ValueError(
            f"--features: the policy does not have the new features of {', '.join(unknown[:5])}"
            f"{' …' if len(unknown) > 5 else ''}: train it on a log with these articles, or remove "
            "them first and put them again after"
        )
    new = [
        each if each.features is None else msgspec.structs.replace(each, features=known[each.id])
        for each in facts
    ]
    return model.identity, tuple(new)


def _article_features(policy: Policy) -> dict[str, tuple[float, ...]]:
    """The features that the policy knows of each article: none if its model has no use for any."""
    rows = policy.model.arrays().get("features")
    if rows is None:
        return {}
    return {
        article: tuple(row.tolist())
        for article, row in zip(policy.model.roster.ids, rows, strict=True)
        if article is not None
    }


def _described(pool: Pool, articles: tuple[ArticleFacts, ...]) -> Pool:
    """The pool as it will be, for checking."""
    twin = Pool(pool.name, pool.policy, pool.dimension, event=pool.event)
    twin.articles = {
        each.id: msgspec.structs.replace(pool.articles[each.id], facts=each) for each in articles
    }
    return twin
