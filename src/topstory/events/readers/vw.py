"""Vowpal Wabbit's text format with action-dependent features, cb_adf (docs/importing.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from topstory.events.log import EventLog
from topstory.events.readers.actions import CHANGED, Actions
from topstory.events.readers.encodings import HashEncoding, Unfit
from topstory.events.readers.faults import Faults
from topstory.events.readers.gathering import Gathering, pool_fault
from topstory.events.readers.lines import line_blocks
from topstory.events.readers.named_features import Named, exactly, feature_id
from topstory.events.readers.reader import Progress
from topstory.events.readers.settings import Settings
from topstory.events.readers.sifting import sift
from topstory.events.readers.vw_line import BadLine, VwLine, vw_line

MOST = 1 << 16  # lines of an example; in a file without blank lines they would fill the memory
REMEMBERED = 1 << 16  # actions that are kept at hand as they are written

Numbered = tuple[int, bytes]
Known = tuple[str, bool]  # an action's id, and whether it has other features than before


class VwReader:
    """Reads multi-line examples: a shared line, one line an action, and a blank line.

    >>> VwReader().name
    'vw'
    """

    name = "vw"
    about = "Vowpal Wabbit: text with action-dependent features (cb_adf)"
    options: Mapping[str, str] = {
        "dimensions": "length of the hashed vectors, the constant included (default 32)",
        "id": "what names an action: tag, hash (made of its features), or a feature such as "
        "Action^article (default: the tag, else hash)",
    }

    def read(
        self, files: Sequence[Path], faults: Faults, progress: Progress, **options: Any
    ) -> Iterator[EventLog]:
        """The examples in which exactly one action has a label."""
        settings = Settings(self.name, options, self.options)
        encoding = HashEncoding(settings.whole("dimensions", 32, least=2))
        examples = _Examples(encoding, faults, settings.text("id"))
        for path in files:
            gathering = Gathering(str(path))
            for example in _examples(path, faults, progress):
                examples.take(example, gathering)
                if gathering.full:
                    yield from examples.finish(gathering)
                    gathering = Gathering(str(path))
            yield from examples.finish(gathering)


def _examples(path: Path, faults: Faults, progress: Progress) -> Iterator[list[Numbered]]:
    """The lines of each example, with their numbers."""
    example: list[Numbered] = []
    for block in line_blocks(path, faults, progress):
        for number, line in enumerate(block.lines(), block.first):
            if line.strip():
                example.append((number, line))
            elif example:
                yield example
                example = []
            if len(example) > MOST:
                raise ValueError(
                    f"{path}:{example[0][0]}: more than {MOST} lines without a blank one; "
                    "a blank line ends each example of cb_adf"
                )
    if example:
        yield example


class _Examples:
    """Takes in example after example, and remembers the actions."""

    def __init__(self, encoding: HashEncoding, faults: Faults, key: str | None) -> None:
        self._encoding, self._faults, self._key = encoding, faults, key
        self._actions = Actions(encoding)
        self._known: dict[bytes, Known] = {}

    def take(self, example: list[Numbered], gathering: Gathering) -> None:
        """One example: an event or a refusal."""
        number, text = example[0]
        shared: list[Named] = []
        pool: list[str] = []
        fresh: list[tuple[int, bytes, str, VwLine]] = []
        changed: list[Numbered] = []
        chosen: list[tuple[int, VwLine]] = []
        try:
            for number, text in example:
                known = self._known.get(text)
                if known is not None:
                    pool.append(known[0])
                    if known[1]:
                        changed.append((number, text))
                    continue
                line = vw_line(text.decode("utf-8", "surrogateescape"))
                if line.shared:
                    if text is not example[0][1]:
                        raise BadLine("a shared line is not the first of its example")
                    shared = line.features
                    continue
                if line.label is not None:
                    chosen.append((len(pool), line))
                pool.append(self._id(line))
                fresh.append((number, text, pool[-1], line))
            number, text = example[0]
            fault = pool_fault(pool)
            if fault is not None:
                raise BadLine(f"{fault} (each action needs a tag of its own)")
            if len(chosen) != 1 or chosen[0][1].label is None:
                raise BadLine("not exactly one action of the example has a label")
            at, label = chosen[0][0], chosen[0][1].label
            # Last: an action keeps the features it is first met with, so the event must be good.
            for number, text, key, line in fresh:
                if self._meet(key, line, text):
                    changed.append((number, text))
        except (BadLine, Unfit) as error:
            gathering.refuse(number, str(error), text)
            return
        if changed:
            self._faults.note(CHANGED, gathering.file, *min(changed))
        number, text = example[0]
        user = self._encoding.user(shared)
        payoff = 0.0 - label.cost
        size = sum(len(line) for _, line in example)
        gathering.add(
            number, user, tuple(pool), at, payoff, label.probability, text=text, size=size
        )

    def finish(self, gathering: Gathering) -> Iterator[EventLog]:
        """The good events."""
        users = self._encoding.users(gathering.users)
        log = sift(gathering.rows(users, self._actions.table(gathering.pools)), self._faults)
        if log is not None:
            yield log

    def _meet(self, key: str, line: VwLine, text: bytes) -> bool:
        """Whether the action, now remembered, has other features than before; raises Unfit."""
        changed = not self._actions.meet(key, line.features)
        if line.label is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[text] = key, changed
        return changed

    def _id(self, line: VwLine) -> str:
        if self._key == "hash" or (self._key is None and not line.tag):
            return feature_id(line.features)
        if self._key in (None, "tag"):
            return line.tag
        own = f"{self._key}="
        for name, value in line.features:
            if name.startswith(own):
                return name.removeprefix(own)
            if name == self._key:
                return exactly(value)
        raise BadLine(f"an action has no feature {self._key}, which was to be its id")


READERS = (VwReader(),)
