"""The front page: the Today Module of the paper's Figure 1, chosen for this visitor."""

from __future__ import annotations

import re
import secrets
from time import monotonic, time

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import Acknowledged, DecideRequest, Decision, FeedbackRequest
from topstory.serving.config.schema import KeyConfig
from topstory.serving.http.asgi import cookie, header
from topstory.serving.journal.clock import as_datetime
from topstory.serving.journal.records import Decided
from topstory.serving.pages.explanation import Explanation, explain, recorded_decision
from topstory.serving.pages.lookup import decision_of
from topstory.serving.pages.names import Names
from topstory.serving.pages.rendering import data, page
from topstory.serving.security.api_keys import Keys, new_key
from topstory.serving.service.replies import Awaited
from topstory.serving.service.service import Service
from topstory.serving.state.pool import Pool, context

SLOTS = 4  # F1 to F4
KEY = "today"  # the name by which the journal knows that this page asked
RATE, BURST = 100.0, 300  # visits a second, of all strangers together
COOKIE = "topstory_visitor"
VISITOR = re.compile(r"[0-9a-f]{16}")
YEAR = 365 * 86_400


class StoryView(msgspec.Struct, frozen=True):
    """An article as visitors see it."""

    id: str
    title: str
    summary: str
    picture: str
    link: str
    topic: str


class Today:
    """Decides by the same pipeline as `/v1/decide`, and pays by that of `/v1/feedback`."""

    def __init__(self, service: Service, names: Names) -> None:
        self._service, self._names = service, names
        self._pool = next(iter(service.config.pools))
        configured = KeyConfig(name=KEY, sha256=new_key()[1])  # nobody has this key
        self._keys = Keys([configured], RATE, BURST)
        self._safe_links = not (service.config.demo or service.config.pages.simulated)

    async def front(self, request: Request) -> Response:
        """The page, with a decision of its own: a visit."""
        place = _number(request.query_params.get("as"), len(self._names.personas))
        visitor = cookie(header(request.scope, b"cookie"), COOKIE)
        known = visitor is not None and VISITOR.fullmatch(visitor) is not None
        known = known and "new" not in request.query_params
        if visitor is None or not known:
            visitor = secrets.token_hex(8)
        decision, problem = None, None
        try:
            decision = await self._decide(place, visitor)
        except ApiError as error:
            problem = error
        stories = [] if decision is None else self._stories(decision)
        answer = page(
            "today.html.j2",
            503 if problem is not None and problem.status == 503 else 200,
            decision=decision,
            problem=problem,
            stories=stories,
            personas=self._names.personas,
            chosen=place,
            now=as_datetime(int(time() * 1_000_000)),
            links=self._safe_links,
            simulated=self._service.config.pages.simulated,
        )
        if not known:
            answer.set_cookie(COOKIE, visitor, YEAR, httponly=True, samesite="lax")
        return answer

    async def click(self, request: Request) -> Response:
        """The visitor opened the story: a payoff of 1, sent once however often they click."""
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise ApiError(403, "wrong_origin", "this is for the page itself")
        self._spend()
        reply: Awaited[Acknowledged] = Awaited()
        asked = FeedbackRequest(decision=_decision_id(request), payoff=1.0)
        self._service.front.pay(asked, reply, KEY)
        return data(await reply.answer)

    async def why(self, request: Request) -> Response:
        """Why this story: by the model as it is now."""
        self._spend()
        found = await decision_of(self._service, _decision_id(request))
        async with self._service.spare_time.piece():  # it takes as long as several decisions
            return data(self._explained(found.decided))

    def _explained(self, decided: Decided) -> Explanation:
        user, names = context(decided.user).tolist(), self._names.segments
        try:
            return explain(self._service, self._pool, user, names, recorded_decision(decided))
        except KeyError:
            raise ApiError(410, "gone", "the story was taken off the page since") from None

    async def _decide(self, persona: int, visitor: str) -> Decision:
        self._spend()
        reply: Awaited[Decision] = Awaited()
        asked = DecideRequest(
            user=self._names.personas[persona].user, visitor=f"{visitor}-{persona}", slots=SLOTS
        )
        self._service.front.ask(asked, reply, KEY)
        return await reply.answer

    def _spend(self) -> None:
        (key,) = self._keys.all
        self._keys.spend(key, monotonic(), 1)

    def _stories(self, decision: Decision) -> list[StoryView]:
        pool = self._service.decider(self._pool).pool
        ids = [article for article in decision.ranking if article in pool.articles]
        return [self._story(pool, article) for article in ids]

    def _story(self, pool: Pool, article: str) -> StoryView:
        facts = pool.articles[article].facts
        link = facts.link if facts.link.startswith(("https://", "http://")) else ""
        picture = facts.picture if facts.picture.startswith(("https://", "/")) else ""
        features = facts.features or ()
        topics = self._names.topics
        topic = ""
        if topics and len(features) > 1:
            best = max(range(len(features) - 1), key=lambda place: features[place])
            topic = topics[best] if best < len(topics) else ""
        return StoryView(article, facts.title or article, facts.summary, picture, link, topic)


def _number(text: str | None, count: int) -> int:
    """Which of so many; the first if the text says none of them."""
    known = text is not None and text.isdecimal() and len(text) < 7 and int(text) < count
    return int(text) if text is not None and known else 0


def _decision_id(request: Request) -> str:
    found = request.query_params.get("decision", "")
    if not 0 < len(found) <= 100:
        raise ApiError(422, "bad_request", "`decision` must be the id of a decision")
    return found
