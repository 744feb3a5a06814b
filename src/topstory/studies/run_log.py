"""What a study has done so far, kept as it is done: one line of JSON for each finished run.

A line counts once its end is on the disk. A study that was killed, at whatever moment, finds every
run that it had recorded, and repeats none of them; a line that was torn is dropped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Self

import msgspec

from topstory.evaluation import Outcome, Run
from topstory.files import locked
from topstory.studies.logs.summaries import LogSummary, called

FORMAT, VERSION = "topstory-study", 1


class Heading(msgspec.Struct, frozen=True, tag="study"):
    """The first line: which logs the runs are of, and what made them."""

    format: str
    version: int
    logs: dict[str, str]  # role -> what the log is known by
    made_by: str  # "topstory 0.1.0"


class Described(msgspec.Struct, frozen=True, tag="log"):
    """What a log looked like."""

    summary: LogSummary


class Recorded(msgspec.Struct, frozen=True, tag="run"):
    """A finished run."""

    stage: str  # tuning or evaluation
    outcome: Outcome
    session: int  # how many times the study had been begun
    elapsed: float  # seconds since that session began


Line = Heading | Described | Recorded


class Journal:
    """A study's folder, and what is recorded in it; one study at a time.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Journal(Path(folder) / "out", {"tuning": "x"}, "topstory") as journal:
    ...         len(journal.outcomes("tuning"))
    0
    """

    NAME = "journal.jsonl"

    def __init__(self, folder: Path, logs: dict[str, str], made_by: str) -> None:
        self.folder = folder
        self._began = perf_counter()
        self._done: dict[tuple[str, Run], Recorded] = {}
        self.summaries: dict[str, LogSummary] = {}
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder}: is a file, and a study needs a folder; name a new one")
        path = folder / self.NAME
        if folder.exists() and not path.exists() and (other := next(folder.iterdir(), None)):
            raise ValueError(
                f"{folder}: holds {other.name!r}, which is no study's; name a new folder"
            )
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._file = locked(path)
        except BlockingIOError:
            raise ValueError(
                f"{folder}: another study is writing here; wait for it, or name another"
            ) from None
        try:
            self._open(path, Heading(FORMAT, VERSION, logs, made_by))
        except BaseException:
            self._file.close()
            raise

    def _open(self, path: Path, wanted: Heading) -> None:
        lines = self._whole_lines(path)
        if not lines:
            self._append(wanted)
            return
        heading, *others = lines
        if not isinstance(heading, Heading) or heading.format != FORMAT:
            raise ValueError(f"{path}: not the journal of a study; name another folder")
        if heading.version != VERSION or heading.made_by != wanted.made_by:
            raise ValueError(
                f"{path}: begun by {heading.made_by} (format {heading.version}), and this is "
                f"{wanted.made_by} (format {VERSION}): runs of both must not be mixed; name a new "
                "folder"
            )
        for role in {*heading.logs, *wanted.logs}:
            ours, theirs = wanted.logs.get(role, "none"), heading.logs.get(role, "none")
            if ours != theirs:
                raise ValueError(
                    f"{self.folder}: holds a study of another {called(role)}: {theirs}, not "
                    f"{ours}; name a new folder"
                )
        for line in others:
            if isinstance(line, Recorded):
                self._done[line.stage, line.outcome.run] = line
            elif isinstance(line, Described):
                self.summaries[line.summary.role] = line.summary

    def _whole_lines(self, path: Path) -> list[Line]:
        self._file.seek(0)
        content = self._file.read()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            self._file.truncate(len(whole))  # torn: the study was killed while it wrote
        decoder = msgspec.json.Decoder(Line)
        lines: list[Line] = []
        for number, text in enumerate(whole.splitlines(), 1):
            try:
                lines.append(decoder.decode(text))
            except msgspec.DecodeError as error:
                raise ValueError(
                    f"{path}: line {number} is damaged ({error}); remove the folder to begin anew"
                ) from None
        return lines

    def _append(self, line: Line) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    @property
    def session(self) -> int:
        """The number of the next session: one more than the last that recorded a run."""
        return max((line.session for line in self._done.values()), default=0) + 1

    def describe(self, summary: LogSummary) -> None:
        """Record what a log looked like."""
        self._append(Described(summary))
        self.summaries[summary.role] = summary

    def record(self, stage: str, outcome: Outcome, session: int) -> None:
        """Record a finished run; once this returns, it survives whatever comes."""
        line = Recorded(stage, outcome, session, perf_counter() - self._began)
        self._append(line)
        self._done[stage, outcome.run] = line

    def outcomes(self, stage: str) -> dict[Run, Outcome]:
        """All runs of a stage that are recorded."""
        return {run: line.outcome for (of, run), line in self._done.items() if of == stage}

    @property
    def seconds(self) -> float:
        """How long the study has taken, over all its sessions: up to each one's last run."""
        sessions: dict[int, float] = {}
        for line in self._done.values():
            sessions[line.session] = max(line.elapsed, sessions.get(line.session, 0.0))
        return sum(sessions.values())

    def __iter__(self) -> Iterator[tuple[str, Outcome]]:
        return ((stage, line.outcome) for (stage, _), line in self._done.items())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
