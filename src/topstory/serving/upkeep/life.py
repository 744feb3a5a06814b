"""What goes on in a service beside its requests, from the first to the last."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from topstory.serving.service.service import Service
from topstory.serving.upkeep.keeper import Keeper

log = logging.getLogger("topstory.serving")


@asynccontextmanager
async def life(service: Service, keeper: Keeper) -> AsyncIterator[None]:
    """What goes on from the first request to the last."""
    keeping = asyncio.create_task(keeper.run())
    try:
        yield
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping
        await service.commits.drain()
        try:
            await keeper.snapshot()
        except OSError as error:  # the journal has everything: the next start only takes longer
            log.error("no snapshot was written at the end: %s", error)
        await service.commits.drain()
        service.close()
        log.info("stopped at record %d", service.state.number)
