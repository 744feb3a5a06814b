"""The configuration of the pages: `[pages]`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from topstory.serving.config.section import Positive, Section

Web = Annotated[str, Meta(pattern=r"^https?://")]


class PersonaConfig(Section, frozen=True):
    """A visitor to try the page `/` as."""

    name: Annotated[str, Meta(min_length=1, max_length=60, description="a name for people")]
    user: Annotated[tuple[float, ...], Meta(min_length=1, description="their context")]
    likes: Annotated[str, Meta(max_length=200, description="what they like, in words")] = ""


class PagesConfig(Section, frozen=True):
    """The pages that the service shows in a browser."""

    today: Annotated[
        bool, Meta(description="whether `/` shows the first pool as a front page, to anybody")
    ] = False
    studio: Annotated[
        bool, Meta(description="whether `/studio` is there; one signs in with an API key")
    ] = True
    session_hours: Annotated[
        Positive, Meta(description="how long one stays signed in to the studio")
    ] = 12.0
    segments: Annotated[
        tuple[str, ...],
        Meta(
            description="names of the segments of visitors, in the order of a context's numbers. "
            "Not set: from the feature model if there is one, else numbers"
        ),
    ] = ()
    topics: Annotated[
        tuple[str, ...],
        Meta(description="names of the articles' features, in their order, without the constant"),
    ] = ()
    personas: Annotated[
        tuple[PersonaConfig, ...],
        Meta(description="`[[pages.personas]]`: visitors to try the page `/` as"),
    ] = ()
    docs: Annotated[
        Web | None,
        Meta(
            description="where this documentation is published: the studio then links to its "
            "pages. Not set: it names them",
        ),
    ] = None
    simulated: Annotated[
        bool,
        Meta(description="set by `topstory demo --live`: visitors are simulated, and report truth"),
    ] = False
