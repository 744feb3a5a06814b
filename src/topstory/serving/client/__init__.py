"""Clients of the service. They run in the caller's process."""

from topstory.extras import require

require("client")

from topstory.serving.client.async_client import AsyncClient  # noqa: E402 - needs the extra
from topstory.serving.client.client import Client  # noqa: E402
from topstory.serving.security.decision_ids import decision_number  # noqa: E402

__all__ = ["AsyncClient", "Client", "decision_number"]
