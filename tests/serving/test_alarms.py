"""Whatever the service reports as wrong has an entry on the page of alarms."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import topstory.serving
from topstory.serving.journal.group_commit import STATE_BEHIND
from topstory.serving.journal.journal import TAKEN_OVER
from topstory.serving.journal.postgres.connection import POOLED
from topstory.serving.pages.studio import snapshot

ROOT = Path(topstory.serving.__file__).parent
PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs" / "operations" / "alarms.md"
MONITORING = PAGE.with_name("monitoring.md")
ALERTS = PROJECT / "deploy" / "prometheus" / "alerts.yml"


# What is logged as a warning or worse; why the journal cannot be used; why a request gets 503.
REPORTED = ("log.warning", "log.error", "log.exception", "log.critical")
RAISED = ("JournalLost", "JournalOwned", "DamagedJournal", "Unavailable")
NAMED = {"TAKEN_OVER": TAKEN_OVER, "POOLED": POOLED, "STATE_BEHIND": STATE_BEHIND}


def errors() -> Iterator[str]:
    """The sentences of warnings and errors, the reasons of 503, and the studio's alarms."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called in (*REPORTED, *RAISED) and node.args:
                yield from _sentence(node.args[0])
            elif called == "ApiError" and ast.unparse(node.args[0]) == "503":
                yield from _sentence(node.args[1])
    source = ast.parse(Path(snapshot.__file__).read_text())
    for node in ast.walk(source):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "words":
            yield from _sentence(node.value)


def _sentence(node: ast.expr) -> Iterator[str]:
    """The words of a string, also of one with parts that are not known yet, or with a name."""
    if isinstance(node, ast.Name) and node.id in NAMED:
        yield NAMED[node.id]
    elif isinstance(node, ast.Constant | ast.JoinedStr):
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else "%s"
            for part in (getattr(node, "values", None) or [node])
        )


ERRORS = sorted(set(errors()))


def test_errors_are_found() -> None:
    assert len(ERRORS) > 30
    assert {"overloaded", "busy", TAKEN_OVER} <= set(ERRORS)


@pytest.mark.parametrize("sentence", ERRORS)
def test_every_alarm_has_an_entry(sentence: str) -> None:
    page = _plain(PAGE.read_text())
    parts = re.split(r"%[-+.\d]*[a-z]|[:;]", _plain(sentence))
    found = [part.strip(" ;:.,()") for part in parts]
    words = next((part for part in found if len(part) > 9), max(found, key=len))
    assert words in page, f"alarms.md does not say what to do about: {sentence}"


def alerts() -> list[str]:
    """The metrics that the table of alerts names, and the alerts that Prometheus is given."""
    table = MONITORING.read_text().split("## Alerts")[1].split("## Metrics")[0]
    rules = yaml.safe_load(ALERTS.read_text())["groups"]
    named = {rule["alert"] for group in rules for rule in group["rules"]}
    return sorted(named | set(re.findall(r"topstory_\w+", table)))


def test_alerts_are_found() -> None:
    assert {"TopstoryDown", "topstory_journal_failing"} <= set(alerts())


@pytest.mark.parametrize("alert", alerts())
def test_every_alert_on_a_metric_has_an_entry(alert: str) -> None:
    assert re.search(rf"`{alert}\b", PAGE.read_text()), f"alarms.md does not name {alert}"


@pytest.mark.parametrize("title", re.findall("^## (.+)$", PAGE.read_text(), re.M))
def test_every_entry_says_what_to_do(title: str) -> None:
    entry = PAGE.read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    assert re.search(r"\*Seen (as|at)\b", entry), "how it is recognised"
    assert "*Do" in entry, "what to do"


def _plain(text: str) -> str:
    return re.sub(r"[`\\\s]+", " ", text).lower()
