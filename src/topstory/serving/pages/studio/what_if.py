"""The studio's *what if*: one trial at a time, in a process that can be cancelled."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from base64 import b64encode
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from topstory.policies.entries import PolicyEntry
from topstory.policies.policy import Policy
from topstory.policies.registry import REGISTRY
from topstory.policies.registry import policy as policy_called
from topstory.serving import child_process
from topstory.serving.api.errors import ApiError
from topstory.serving.config.schema import SERVED, Config
from topstory.serving.pages.studio.what_if_process import Method, WhatIfPolicy, WhatIfQuestion

MODULE = "topstory.serving.pages.studio.what_if_process"
MAX_LINE = 1_000_000  # bytes
MAX_CANDIDATES = 12


class WhatIfRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The policies to try, and how."""

    candidates: Annotated[tuple[WhatIfPolicy, ...], Meta(min_length=1, max_length=MAX_CANDIDATES)]
    method: Method = "evaluate"


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
            check(candidate)
        self._forget()
        self._folder = Path(tempfile.mkdtemp(prefix="topstory-what-if-"))
        where = self._config.journal.url or self._config.data
        question = WhatIfQuestion(
            *(where, pool, request.candidates, str(self._folder)), method=request.method
        )
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

    async def trained(self, place: int) -> str:
        """A policy that was trained on the whole log: a file of `Policy.save`, in base64."""
        found = None if self._folder is None else self._folder / f"{place}.safetensors"
        if self.state["state"] != "done" or found is None or not found.is_file():
            raise ApiError(409, "no_result", "there is no such policy: evaluate it first")
        most = self._config.limits.policy_bytes // 4 * 3  # in base64 it has a third more
        if found.stat().st_size > most:
            message = "the policy is too large to be promoted: see `limits.policy_bytes`"
            raise ApiError(413, "policy_too_large", message)
        return await asyncio.to_thread(lambda: b64encode(found.read_bytes()).decode())

    async def close(self) -> None:
        """The service ends."""
        await self.cancel()
        self._forget()

    async def _run(self, question: WhatIfQuestion) -> None:
        pool = {"pool": question.pool}
        try:
            process = await asyncio.create_subprocess_exec(
                *child_process.command(MODULE, spare=True),
                env=child_process.environment(("PG",)),  # libpq's
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=MAX_LINE,
            )
        except OSError as error:
            message = f"the evaluation could not be started: {error.strerror}"
            self.state = {"state": "failed", **pool, "message": message}
            return
        message = "the evaluation ended without an answer: the service's log says why"
        ended: dict[str, Any] = {"state": "failed", **pool, "message": message}
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(msgspec.json.encode(question))
            process.stdin.close()
            while line := await process.stdout.readline():
                said = msgspec.json.decode(line)
                if "result" in said:
                    ended = {"state": "done", **pool, **said["result"]}
                    break
                if "error" in said:
                    ended = {"state": "failed", **pool, "message": said["error"]}
                    break
                self.state = {"state": "running", **pool, **said}
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        self.state = ended  # once the process has ended: the next one may start at once

    def _forget(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def check(candidate: WhatIfPolicy) -> None:
    """Refuse what cannot be tried, before any work is done."""
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


@cache
def choices() -> dict[str, dict[str, Any]]:
    """The policies that can be tried: what they are called, and the numbers that they take.

    Not those that start from what an earlier log taught: `topstory train` makes them.

    >>> [each["name"] for each in choices()["linucb-hybrid"]["numbers"]]
    ['alpha', 'ridge', 'shared_ridge']
    >>> "omniscient" in choices(), "linucb-hybrid-prior" in choices()
    (False, False)
    """
    return {
        name: {"title": entry.paper, "numbers": _numbers(name, entry)}
        for name, entry in REGISTRY.items()
        if not (entry.model.needs_log or entry.from_prior or "offset" in entry.model_parameters)
    }


def _numbers(name: str, entry: PolicyEntry) -> list[dict[str, Any]]:
    """Each number that it takes, with its default; what tuning searches comes first."""
    defaults = numbers_of(policy_called(name))
    return [
        {"name": each.name, "symbol": each.symbol or each.name.replace("_", " ")}
        | {"help": each.help, "value": defaults[each.name]}
        for each in (*entry.explorer.parameters, *entry.model.parameters)
        if each.name in SERVED and each.name in defaults
    ]


def numbers_of(policy: Policy) -> dict[str, float]:
    """The numbers of a policy, by name.

    >>> numbers_of(policy_called("ucb", alpha=0.5))
    {'alpha': 0.5}
    """
    taken = {**policy.model.parameters(), **policy.explorer.parameters()}
    return {
        name: float(value)
        for name, value in taken.items()
        if name in SERVED and isinstance(value, int | float)
    }


def present(policy: Policy) -> dict[str, Any] | None:
    """A policy as a candidate; None if it is none that can be tried.

    >>> present(policy_called("linucb-disjoint", alpha=0.5))
    {'name': 'linucb-disjoint', 'parameters': {'ridge': 1.0, 'alpha': 0.5}}
    """
    parts = (policy.model.name, policy.explorer.name)
    for name in choices():
        if (REGISTRY[name].model.name, REGISTRY[name].explorer.name) == parts:
            return {"name": name, "parameters": numbers_of(policy)}
    return None
