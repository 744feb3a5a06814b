"""The studio's *what if*: one evaluation at a time, in a process that can be cancelled."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from base64 import b64encode
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from topstory.policies.registry import NUMBERS, REGISTRY
from topstory.policies.registry import policy as policy_called
from topstory.serving import child_process
from topstory.serving.api.errors import ApiError
from topstory.serving.config.schema import SERVED, Config
from topstory.serving.pages.studio.what_if_process import Candidate, Question

MODULE = "topstory.serving.pages.studio.what_if_process"
MAX_LINE = 1_000_000  # bytes
MAX_CANDIDATES = 12


class WhatIfRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The policies to try."""

    candidates: Annotated[tuple[Candidate, ...], Meta(min_length=1, max_length=MAX_CANDIDATES)]


class WhatIf:
    """At most one process; what it said last; and the policies that it trained."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._task: asyncio.Task[None] | None = None
        self._folder: Path | None = None
        self.state: dict[str, Any] = {"state": "idle"}

    def start(self, pool: str, request: WhatIfRequest) -> dict[str, Any]:
        """Begin to try these policies on the journal of a pool."""
        if self._task is not None and not self._task.done():
            raise ApiError(409, "busy", "another evaluation is under way: wait, or cancel it")
        for candidate in request.candidates:
            _check(candidate)
        self._forget()
        self._folder = Path(tempfile.mkdtemp(prefix="topstory-what-if-"))
        where = self._config.journal.url or self._config.data
        question = Question(where, pool, request.candidates, str(self._folder))
        self.state = {"state": "running", "pool": pool, "doing": "starting", "done": 0.0}
        self._task = asyncio.create_task(self._run(question))
        return self.state

    async def cancel(self) -> dict[str, Any]:
        """End the process, if there is one."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self.state = {"state": "cancelled"}
            self._forget()
        return self.state

    def trained(self, place: int) -> str:
        """A policy that was trained on the whole log: a file of `Policy.save`, in base64."""
        found = None if self._folder is None else self._folder / f"{place}.safetensors"
        if self.state["state"] != "done" or found is None or not found.is_file():
            raise ApiError(409, "no_result", "there is no such policy: evaluate it first")
        return b64encode(found.read_bytes()).decode()

    async def close(self) -> None:
        """The service ends."""
        await self.cancel()
        self._forget()

    async def _run(self, question: Question) -> None:
        pool = {"pool": question.pool}
        try:
            process = await asyncio.create_subprocess_exec(
                *child_process.command(MODULE),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=MAX_LINE,
            )
        except OSError as error:
            message = f"the evaluation could not be started: {error.strerror}"
            self.state = {"state": "failed", **pool, "message": message}
            return
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(msgspec.json.encode(question))
            process.stdin.close()
            while line := await process.stdout.readline():
                said = msgspec.json.decode(line)
                if "result" in said:
                    self.state = {"state": "done", **pool, **said["result"]}
                elif "error" in said:
                    self.state = {"state": "failed", **pool, "message": said["error"]}
                else:
                    self.state = {"state": "running", **pool, **said}
            if self.state["state"] == "running":
                message = "the evaluation ended without an answer: the service's log says why"
                self.state = {"state": "failed", **pool, "message": message}
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    def _forget(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _check(candidate: Candidate) -> None:
    if candidate.name not in choices():
        raise ApiError(422, "bad_request", f"there is no policy {candidate.name!r} to evaluate")
    for name in candidate.parameters:
        if name not in SERVED:
            raise ApiError(422, "bad_request", f"{candidate.name} has no number {name!r}")
    numbers: dict[str, Any] = dict(candidate.parameters)
    try:
        policy_called(candidate.name, **numbers)
    except (TypeError, ValueError) as error:
        raise ApiError(422, "bad_request", str(error)) from None


def choices() -> dict[str, dict[str, Any]]:
    """The policies that can be tried: what they are called, and the number that tuning searches.

    >>> choices()["linucb-hybrid"]["tuned"], "omniscient" in choices()
    ('alpha', False)
    """
    return {
        name: {
            "title": entry.paper,
            "tuned": None if entry.tuned is None else entry.tuned.name,
            "value": None if entry.tuned is None else _default(entry.tuned.name),
        }
        for name, entry in REGISTRY.items()
        if not entry.model.needs_log and "offset" not in entry.model_parameters
    }


def _default(parameter: str) -> float:
    grid = NUMBERS[parameter].grid if parameter in NUMBERS else ()
    return float(grid[len(grid) // 2]) if grid else 1.0
