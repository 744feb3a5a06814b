"""The demo's stories and their pictures: drawn, not stored, and the same for everybody."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from topstory.serving.demo.people import people, unknown
from topstory.serving.demo.pictures import NAME, draw
from topstory.serving.demo.stories import STORIES, TOPICS, picture, story

SVG = "{http://www.w3.org/2000/svg}"
DRAWN = {
    "svg",
    "defs",
    "linearGradient",
    "stop",
    "rect",
    "path",
    "circle",
    "line",
    "ellipse",
    "g",
    "clipPath",
}
MAX_BYTES = 40_000
LOWER = tuple(topic.lower() for topic in TOPICS)


@pytest.mark.parametrize("topic", LOWER)
def test_every_storys_picture_is_a_small_drawing_that_runs_nothing(topic: str) -> None:
    for number in range(2 * len(STORIES[0])):
        drawn = draw(topic, number)
        assert len(drawn.encode()) < MAX_BYTES
        root = ElementTree.fromstring(drawn)
        assert root.tag == f"{SVG}svg"
        assert root.attrib["viewBox"] == "0 0 1200 675"
        for each in root.iter():
            assert each.tag.removeprefix(SVG) in DRAWN
            assert not [name for name in each.attrib if name.startswith("on") or "href" in name]
            assert "nan" not in " ".join(each.attrib.values()).lower()


@pytest.mark.parametrize("topic", LOWER)
def test_the_same_story_has_the_same_picture_and_no_other_story_has_it(topic: str) -> None:
    count = 2 * len(STORIES[0])
    once = [draw(topic, number) for number in range(count)]
    draw.cache_clear()
    assert [draw(topic, number) for number in range(count)] == once
    others = [draw(other, number) for other in LOWER if other != topic for number in range(count)]
    assert len({*once, *others}) == count * len(LOWER)


def test_every_story_is_told_once_and_its_picture_has_a_name_that_the_route_takes() -> None:
    titles = [story(topic, n).title for topic in range(len(TOPICS)) for n in range(40)]
    assert len(set(titles)) == len(titles)
    for topic in range(len(TOPICS)):
        for each in STORIES[topic]:
            assert each.title
            assert each.summary
            assert "<" not in each.title + each.summary
        address = picture(topic, 9999)
        assert NAME.fullmatch(address.removeprefix("/pictures/").removesuffix(".svg"))
    assert NAME.fullmatch("arts-10000") is None
    assert NAME.fullmatch("../arts-1") is None


def test_the_people_of_the_demo_are_contexts_that_sum_to_one() -> None:
    for person in (*people(), unknown(len(TOPICS) + 1)):
        *memberships, constant = person.user
        assert sum(memberships) == pytest.approx(1.0)
        assert constant == 1.0
    assert [person.user.index(max(person.user[:-1])) for person in people()] == [0, 1, 2, 3, 4]
    bland, keen = people([[0.0] * 5] + [[0.9, 0.0, 0.0, 0.0, -0.9]] * 4)[:2]
    assert bland.likes == "reads a bit of everything"
    assert keen.likes == "follows politics, rarely opens arts"
