"""Decisions by their id: from memory, or from the journal."""

from __future__ import annotations

import asyncio

from topstory.serving.api.errors import ApiError
from topstory.serving.journal.journal import Found, JournalError
from topstory.serving.service.sequencer.remote_lookups import unreadable
from topstory.serving.service.service import Service


async def decision_of(service: Service, token: str) -> Found:
    """The decision that this service signed the id of."""
    number, _ = service.signer.check(token)
    return await numbered(service, number)


async def numbered(service: Service, number: int) -> Found:
    """The decision of that number."""
    recent = service.recent.get(number)
    if recent is not None and recent.committing is None:
        return Found(recent.number, recent.at, recent.decided, recent.payoff)
    try:
        found = await asyncio.to_thread(_find, service, number)
    except JournalError as error:
        raise unreadable(error) from None
    if found is None:
        raise ApiError(
            404, "unknown_decision", "there is no such decision in the journal: was it archived?"
        )
    return found


def _find(service: Service, number: int) -> Found | None:
    """On a connection of its own: those of the journal belong to other threads."""
    journal = service.journal.reopen()
    try:
        return journal.decision(number)
    finally:
        journal.close()
