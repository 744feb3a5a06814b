"""The pages without a browser: who may see what, and what every answer must have."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from tests.serving.pages.in_process import MARK, Site, site

from topstory.serving.api.endpoints import ROLES
from topstory.serving.pages.assets import ASSETS, address
from topstory.serving.pages.rendering import POLICY
from topstory.serving.pages.studio.studio import SECTIONS
from topstory.serving.security import sessions

DATA = ("now", "articles", "visitors", "policy", "what-if", "health", "recent")
NASTY = "<script>alert('x')</script>&\"quoted\""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The demo's articles, on the front page, after some visits."""
    folder = tmp_path_factory.mktemp("in-process") / "data"
    with site(folder, demo=True, context=6, pages={"today": True}) as found:
        found.visit(200, 80)
        yield found


# -- who may see what --


def test_a_stranger_is_asked_to_sign_in_and_gets_no_data(demo: Site) -> None:
    for section in ("", *(f"/{each}" for each in SECTIONS)):
        answer = demo.get(f"/studio{section}")
        assert answer.status_code == 401
        assert 'id="key"' in answer.text
        assert "application/json" not in answer.text.partition("<body")[2]
    for name in DATA:
        answer = demo.get(f"/studio/data/{name}")
        assert (answer.status_code, answer.json()["error"]["reason"]) == (401, "no_key"), name
    wrong = {"Authorization": "Bearer ts_wrong"}
    refused = demo.post("/studio/session", headers=wrong)
    assert refused.status_code == 401
    assert "set-cookie" not in refused.headers


@pytest.mark.parametrize("role", ROLES)
def test_only_a_key_that_may_read_sees_the_studio(demo: Site, role: str) -> None:
    session = demo.sign_in(role)
    expected = 200 if role == "read" else 403
    for section in SECTIONS:
        assert demo.get(f"/studio/{section}", session=session).status_code == expected
    for name in DATA:
        answer = demo.get(f"/studio/data/{name}", session=session)
        assert answer.status_code == expected, (name, answer.text)


def test_every_section_names_itself_and_says_what_the_key_may_do(demo: Site) -> None:
    reader, everything = demo.sign_in("read"), demo.sign_in("all")
    pages = {each: demo.get(f"/studio/{each}", session=everything).text for each in SECTIONS}
    assert len(set(pages.values())) == len(SECTIONS)
    for title in SECTIONS.values():
        assert all(title in text for text in pages.values())
    assert '"can_edit":true' in pages["articles"]
    assert '"can_edit":false' in demo.get("/studio/articles", session=reader).text
    assert demo.get("/studio/nothing", session=everything).status_code == 404
    assert demo.get("/studio?pool=nowhere", session=everything).status_code == 404
    assert demo.get("/studio", session=everything).status_code == 200


def test_a_session_is_a_strict_cookie_that_scripts_cannot_read(demo: Site) -> None:
    answer = demo.post("/studio/session", "all")
    cookie = answer.headers["set-cookie"].lower()
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "secure" not in cookie
    assert demo.keys["all"].lower() not in cookie
    behind = demo.post("/studio/session", "all", headers={"X-Forwarded-Proto": "https"})
    assert "secure" in behind.headers["set-cookie"].lower()
    out = demo.post("/studio/sign-out")
    assert (out.status_code, out.headers["location"]) == (303, "/studio")
    assert "max-age=0" in out.headers["set-cookie"].lower()
    forged = demo.get("/studio", session="topstory_studio=forged")
    assert forged.status_code == 401
    assert demo.get("/studio", session='topstory_studio="a\\"; =;').status_code == 401


def test_an_expired_session_is_called_so_and_leads_back_to_the_page_asked_for(
    demo: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, path = demo.sign_in("read"), "/studio/health?pool=front"
    assert "Your session has ended" not in demo.get(path).text
    later = time.time() + demo.service.config.pages.session_hours * 3600 + 1
    monkeypatch.setattr(sessions, "time", SimpleNamespace(time=lambda: later))
    page = demo.get(path, session=session)
    assert page.status_code == 401
    assert "Your session has ended" in page.text
    assert f'data-wanted="{path}"' in page.text
    asked = demo.get("/studio/data/now", session=session)
    assert (asked.status_code, asked.json()["error"]["reason"]) == (401, "session_expired")


# -- edits through the studio --


def test_a_cookie_alone_changes_nothing(demo: Site) -> None:
    """A page of another site can make a browser send the cookie, but not the header."""
    session, path = demo.sign_in("all"), "/v1/pools/front/articles/new"
    body = {"features": [0.2] * 5 + [1.0], "title": "New"}
    assert demo.ask("PUT", path, session=session, json=body).status_code == 401
    assert demo.post("/studio/data/explain", session=session, json={}).status_code == 401
    assert demo.post("/studio/data/what-if/cancel", session=session).status_code == 401
    assert demo.get(path, session=session).status_code == 401
    assert demo.get(path, "read").status_code == 404
    done = demo.ask("PUT", path, session=session, json=body, headers=MARK)
    assert (done.status_code, done.json()["title"]) == (200, "New")
    gone = demo.ask("DELETE", path, session=session, headers=MARK)
    assert gone.json() == {"pool": "front", "removed": "new"}
    reader = demo.sign_in("read")
    assert demo.ask("PUT", path, session=reader, json=body, headers=MARK).status_code == 403


def test_markup_in_an_article_is_text_on_every_page(demo: Site) -> None:
    path, session = "/v1/pools/front/articles/nasty", demo.sign_in("all")
    facts = {
        "features": [0.2] * 5 + [1.0],
        "title": NASTY,
        "summary": NASTY,
        "link": "javascript:alert(1)",
        "picture": "javascript:alert(1)",
    }
    others = [each["id"] for each in demo.get("/v1/pools/front/articles", "read").json()]
    assert demo.ask("PUT", path, "edit", json=facts).status_code == 200
    hidden = {"until": "2020-01-01T00:00:00Z"}
    kept = {each: demo.get(f"/v1/pools/front/articles/{each}", "read").json() for each in others}
    for each, view in kept.items():
        shown = {name: view[name] for name in ("features", "title", "summary", "picture")}
        changed = demo.ask("PUT", f"/v1/pools/front/articles/{each}", "edit", json=shown | hidden)
        assert changed.status_code == 200, changed.text
    try:
        page = demo.get("/")
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "javascript:" not in page.text
        assert "&lt;script&gt;alert" in page.text
        assert "<script>alert" not in demo.get("/studio/articles", session=session).text
    finally:
        for each, view in kept.items():
            shown = {name: view[name] for name in ("features", "title", "summary", "picture")}
            demo.ask("PUT", f"/v1/pools/front/articles/{each}", "edit", json=shown)
        assert demo.ask("DELETE", path, "edit").status_code == 200


def test_every_page_allows_scripts_of_its_own_files_only(demo: Site) -> None:
    session = demo.sign_in("read")
    pages = [demo.get("/"), demo.get("/studio"), demo.get("/studio", "decide")]
    pages += [demo.get(f"/studio/{each}", session=session) for each in SECTIONS]
    for page in pages:
        assert page.headers["content-security-policy"] == POLICY
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["content-type"].startswith("text/html")
        assert " style=" not in page.text
        assert " onclick=" not in page.text
    assert "'unsafe-inline'" not in POLICY


def test_assets_are_found_by_name_alone(demo: Site) -> None:
    for name, body in ASSETS.items():
        answer = demo.get(address(name))
        assert (answer.status_code, answer.content) == (200, body)
        assert "immutable" in answer.headers["cache-control"]
    assert demo.get("/pages/old/studio.css").headers["cache-control"] == "no-cache"
    for path in ("/pages/x/none.js", "/pages/x/../studio.py", "/pages/x/%2e%2e/studio.py"):
        assert demo.get(path).status_code == 404, path
    drawn = demo.get("/pictures/arts-3.svg")
    assert drawn.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in drawn.headers["content-security-policy"]
    assert demo.get("/pictures/cats-3.svg").status_code == 404


def test_without_a_front_page_one_is_led_to_the_studio(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("in-process")
    with site(folder / "studio") as found:
        assert found.get("/").headers["location"] == "/studio"
        assert found.get("/today/why").status_code == 404
        assert found.get("/demo").status_code == 404
    with site(folder / "neither", pages={"studio": False}) as found:
        assert found.get("/").status_code == 404
        assert found.get("/studio").status_code == 404
        assert found.get("/v1/stats", "read").status_code == 200
