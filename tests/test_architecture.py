"""The page about the architecture is true, and no room holds more than a reader can look over."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "topstory"
ROOMS = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)
PAGE = (ROOT / "docs" / "concepts" / "architecture.md").read_text("utf-8")
MAX_FILES = 15  # in a room, beside its __init__.py
# Classes of `features`, and what `serving` needs of them: it starts without importing that room.
SAME_MEANING = {
    "EventFeatures": ["features/event/declared.py", "serving/config/feature_model.py"],
    "SeenArticles": ["features/event/seen_articles.py", "serving/state/pool.py"],
}


def test_every_room_is_on_the_page() -> None:
    named = set(re.findall(r"`([a-z_.]+)`", PAGE))
    for room in ROOMS:
        dotted = room.relative_to(PACKAGE.parent).as_posix().replace("/", ".")
        assert {dotted, room.name} & named, f"{dotted} is not in docs/concepts/architecture.md"


def test_the_picture_of_imports_is_the_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (contract,) = (
        each
        for each in project["tool"]["importlinter"]["contracts"]
        if each.get("containers") == ["topstory"]
    )
    (picture,) = re.findall(r"^## Imports point one way\n+```text\n(.*?)^```", PAGE, re.M | re.S)
    drawn = [set(re.findall(r"[a-z_]+", line)) for line in picture.splitlines()]
    assert drawn == [set(re.findall(r"[a-z_]+", layer)) for layer in contract["layers"]]


def test_no_room_is_too_large() -> None:
    for room in ROOMS:
        name, files = room.relative_to(PACKAGE).as_posix(), len([*room.glob("*.py")]) - 1
        assert files <= MAX_FILES, name


def test_no_class_name_has_two_meanings() -> None:
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    twice = {name: files for name, files in found.items() if len(files) > 1}
    assert twice == SAME_MEANING
