"""The run log of a study: one line of JSON for each finished run, written as it finishes.

A line counts once its end is on the disk. A study that was killed, at any moment, finds every run
that it recorded, and repeats none of them. An incomplete last line is dropped.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Self

import msgspec

from topstory.evaluation import Outcome, Run
from topstory.files import locked
from topstory.studies.logs.summaries import LogSummary, role_name

FORMAT, VERSION = "topstory-study", 1


class Header(msgspec.Struct, frozen=True, tag="study"):
    """The first line: which logs the runs are of, and which version made them."""

    format: str
    version: int
    logs: dict[str, str]  # role -> identity of the log
    made_by: str  # "topstory 0.1.0"


class LogLine(msgspec.Struct, frozen=True, tag="log"):
    """The summary of a log."""

    summary: LogSummary


class RunLine(msgspec.Struct, frozen=True, tag="run"):
    """A finished run."""

    stage: str  # tuning or evaluation
    outcome: Outcome
    session: int  # how many times the study had been started
    elapsed: float  # seconds since that session started


Line = Header | LogLine | RunLine


def made_by() -> str:
    """This version of topstory, as a run log records it.

    >>> made_by().partition(" ")[0]
    'topstory'
    """
    return f"topstory {version('topstory')}"


class RunLog:
    """The run log in the folder of a study. Only one process can have it open.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with RunLog(Path(folder) / "out", {"tuning": "x"}, "topstory") as log:
    ...         len(log.outcomes("tuning"))
    0
    """

    NAME = "journal.jsonl"  # part of the file format

    def __init__(self, folder: Path, logs: dict[str, str], made_by: str) -> None:
        self.folder = folder
        self._started = perf_counter()
        self._done: dict[tuple[str, Run], RunLine] = {}
        self.summaries: dict[str, LogSummary] = {}
        if folder.exists() and not folder.is_dir():
            raise ValueError(
                f"{folder}: this is a file, and a study needs a folder; choose another"
            )
        path = folder / self.NAME
        if folder.exists() and not path.exists() and (other := next(folder.iterdir(), None)):
            raise ValueError(
                f"{folder}: contains {other.name!r}, which is not part of a study; choose another"
            )
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._file = locked(path)
        except BlockingIOError:
            raise ValueError(
                f"{folder}: another study is running here; wait, or choose another folder"
            ) from None
        try:
            self._open(path, Header(FORMAT, VERSION, logs, made_by))
        except BaseException:
            self._file.close()
            raise

    def _open(self, path: Path, wanted: Header) -> None:
        lines = self._whole_lines(path)
        if not lines:
            self._append(wanted)
            return
        header, *others = lines
        if not isinstance(header, Header) or header.format != FORMAT:
            raise ValueError(f"{path}: this is not the run log of a study; choose another folder")
        if header.version != VERSION or header.made_by != wanted.made_by:
            raise ValueError(
                f"{path}: started by {header.made_by} (format {header.version}), and this is "
                f"{wanted.made_by} (format {VERSION}); their runs must not be mixed, so choose a "
                "new folder"
            )
        for role in {*header.logs, *wanted.logs}:
            ours, theirs = wanted.logs.get(role, "none"), header.logs.get(role, "none")
            if ours != theirs:
                raise ValueError(
                    f"{self.folder}: contains a study with another {role_name(role)}: {theirs}, "
                    f"not {ours}; choose a new folder"
                )
        for line in others:
            if isinstance(line, RunLine):
                self._done[line.stage, line.outcome.run] = line
            elif isinstance(line, LogLine):
                self.summaries[line.summary.role] = line.summary

    def _whole_lines(self, path: Path) -> list[Line]:
        self._file.seek(0)
        content = self._file.read()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            self._file.truncate(len(whole))  # incomplete: the study was killed while it wrote
        decoder = msgspec.json.Decoder(Line)
        lines: list[Line] = []
        for number, text in enumerate(whole.splitlines(), 1):
            try:
                lines.append(decoder.decode(text))
            except msgspec.DecodeError as error:
                raise ValueError(
                    f"{path}: line {number} is damaged ({error}); remove the folder to start again"
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
        """Record the summary of a log."""
        self._append(LogLine(summary))
        self.summaries[summary.role] = summary

    def record(self, stage: str, outcome: Outcome, session: int) -> None:
        """Record a finished run; it is on disk when this returns."""
        line = RunLine(stage, outcome, session, perf_counter() - self._started)
        self._append(line)
        self._done[stage, outcome.run] = line

    def outcomes(self, stage: str) -> dict[Run, Outcome]:
        """All recorded runs of a stage."""
        return {run: line.outcome for (of, run), line in self._done.items() if of == stage}

    @property
    def seconds(self) -> float:
        """Duration of the study over all sessions, each up to its last recorded run."""
        sessions: dict[int, float] = {}
        for line in self._done.values():
            sessions[line.session] = max(line.elapsed, sessions.get(line.session, 0.0))
        return sum(sessions.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
