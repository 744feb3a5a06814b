"""A suggested mapping: complete enough to import with, and open about its guesses."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from examples.news_site.export import write_export
from tests.events.formats.mapped.test_mapped import ROWS, write

from topstory.events import EventLog
from topstory.events.formats.importing import import_log
from topstory.events.formats.mapped.suggestion import suggest_mapping


def test_the_suggestion_for_the_example_is_its_mapping(tmp_path: Path) -> None:
    """All but what the columns cannot tell: whether candidates are derived."""
    impressions, articles = write_export(tmp_path, 1_000)
    text = suggest_mapping("csv", impressions, articles)
    found = tomllib.loads(text)
    written = tomllib.loads(Path("examples/news_site/mapping.toml").read_text())
    for each in (written["articles"], found["articles"]):
        each.pop("from", None), each.pop("until", None), each.pop("file")
    assert found == written
    assert f"topstory import csv {impressions} logs/ --map" in text  # what to run, as it is
    assert "# dwell_seconds" in text  # known only after the fact
    (tmp_path / "m.toml").write_text(text)
    report = import_log("csv", impressions, tmp_path / "log", map=tmp_path / "m.toml", max_bad=0.1)
    assert report.events > 900


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_every_column_is_told_by_its_name_or_its_values(format: str, tmp_path: Path) -> None:
    file = write(tmp_path, format, ROWS)
    found = tomllib.loads(suggest_mapping(format, file))
    assert found["timestamp"] == "ts"
    assert found["shown"] == "item"
    assert found["payoff"] == "click"
    assert found["candidates"] == {"column": "offered", "separator": ","}
    assert found["user"]["likes"] == {"kind": "categories", "separator": ";"}
    assert found["user"]["geo"] == "category"


def test_a_column_with_an_odd_name_is_quoted(tmp_path: Path) -> None:
    rows = [row | {'a "b" \\ c': "x"} for row in ROWS]
    found = tomllib.loads(suggest_mapping("csv", write(tmp_path, "csv", rows)))
    assert found["user"]['a "b" \\ c'] == "category"


def test_a_file_without_rows_has_no_mapping(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match="there are no rows in it to make a mapping from"):
        suggest_mapping("csv", tmp_path / "events.csv")
    with pytest.raises(ValueError, match="a mapping is for csv, jsonl, parquet, not for r6a"):
        suggest_mapping("r6a", tmp_path / "events.csv")


def test_decimal_commas_and_ids_are_told(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    rows = [f"{i};{i};{i % 7}.00{i % 10},5{i % 9};{i % 2}" for i in range(300)]
    file.write_text("\n".join(["id;basket_id;price;clicked", *rows]) + "\n")
    text = suggest_mapping("csv", file)
    found = tomllib.loads(text)
    assert (found["decimal"], found["event"]) == (",", "id")
    assert found["user"] == {"price": "number"}
    assert '# basket_id = "number"  # 300 different values in the first rows: an id?' in text


def shop(folder: Path, rows: int = 400) -> tuple[Path, Path]:
    """A shop's files, with names that say nothing, and times and numbers as Germans write them."""
    goods = [f"P-{i}" for i in range(9)]
    articles = ["Nr;Gruppe;Preis;seit"]
    articles += [
        f"{good};{'ab'[i % 2]};{i},5{i};0{i + 1}.03.2026 08:30" for i, good in enumerate(goods)
    ]
    (folder / "waren.csv").write_text("\n".join(articles) + "\n")
    lines, begin = ["A;B;C;D;E;F;Vorjahresumsatz;Klick;Umsatz"], datetime(2026, 2, 1, tzinfo=UTC)
    for i in range(rows):
        offered = [goods[(i + k) % 9] for k in range(4)]
        bought = i % 5 == 0
        lines.append(
            f"{begin + timedelta(minutes=30 * i):%d.%m.%Y %H:%M:%S};{offered[i % 4]};"
            f"{'|'.join(offered)};0,{i % 7}5;{'ja' if i % 3 else 'nein'};{i % 11};"
            f"{i % 90},{i % 10}0;{int(bought)};{'1.234,50' if bought else ''}"
        )
    (folder / "ereignisse.csv").write_text("\n".join(lines) + "\n")
    return folder / "ereignisse.csv", folder / "waren.csv"


def test_parts_are_told_by_what_columns_hold(tmp_path: Path) -> None:
    """A list and its member, days first, articles' ids, and what is there once it was paid."""
    events, articles = shop(tmp_path)
    text = suggest_mapping("csv", events, articles)
    found = tomllib.loads(text)
    assert found["timestamp"] == {"column": "A", "format": "%d.%m.%Y %H:%M:%S"}
    assert (found["shown"], found["candidates"], found["payoff"]) == ("B", "C", "Klick")
    assert found["user"] == {"D": "number", "E": "boolean", "F": "number"}
    for column in ("Umsatz", "Vorjahresumsatz"):
        assert f'# {column} = "number"  # known only after the fact?' in text
    assert found["article"]["seit"] == {"kind": "date", "format": "%d.%m.%Y %H:%M"}
    assert '# from = { column = "seit", format = "%d.%m.%Y %H:%M" }' in text
    (tmp_path / "m.toml").write_text(text)
    report = import_log("csv", events, tmp_path / "log", map=tmp_path / "m.toml")
    assert (report.events, report.noted) == (400, {})
    without = tmp_path / "without.csv"  # the list: then the articles file tells what was shown
    without.write_text(
        "\n".join(";".join(row.split(";")[:2]) for row in events.read_text().splitlines()) + "\n"
    )
    assert tomllib.loads(suggest_mapping("csv", without, articles))["shown"] == "B"


def newspaper(folder: Path, encoding: str = "utf-8") -> tuple[Path, Path]:
    """The files of a French newspaper: a few rows twice, a few broken, and its own words."""
    sections = ["Sport", "Faits divers", "Économie", "Culture"]
    listed = ["ref;rubrique;parution;retrait;mots"]
    listed += [
        f"{20417 + 3 * i};{sections[i % 4]};{i + 1:02d}/02/2026 06:00;{i + 2:02d}/02/2026 06:00;{i}"
        for i in range(9)
    ]
    (folder / "articles.csv").write_text("\n".join(listed) + "\n", encoding)
    rows = ["horodatage;id_evt;qui;ville;sujets;rang;une_affichee;possibles;clic;lecture_s"]
    for i in range(900):
        offered = [20417 + 3 * ((i + k) % 9) for k in range(4)]
        who = (i * 7919) % 300
        subjects = ", ".join(sections[who // 4**k % 4] for k in range(who % 3 + 1))
        shown = offered[i % 4] if i % 200 else 99999
        rows.append(
            f"27/02/2026 {i // 60:02d}:{i % 60:02d}:00;e{i:04d};L{who};{'BQL'[who % 3]};{subjects};"
            f"1;{shown};{offered};{'non' if i % 3 else 'oui'};{'' if i % 3 else '7,5'}"
        )
    rows[40:40] = rows[30:34]  # sent twice
    (folder / "vues.csv").write_text("\n".join(rows) + "\n", encoding)
    return folder / "vues.csv", folder / "articles.csv"


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_an_export_with_broken_and_repeated_rows_is_understood(
    encoding: str, tmp_path: Path
) -> None:
    """Ids before their prefix, visitors by what else is theirs, lists of several words."""
    events, articles = newspaper(tmp_path, encoding)
    text = suggest_mapping("csv", events, articles)
    found = tomllib.loads(text)
    parts = ("shown", "candidates", "event", "visitor", "payoff")
    assert [found[part] for part in parts] == ["une_affichee", "possibles", "id_evt", "qui", "clic"]
    assert found["user"] == {
        "ville": "category",
        "sujets": {"kind": "categories", "separator": ","},
        "rang": "number",  # all are 1 so far
    }
    assert found.get("encoding", "utf-8") == encoding
    assert "decimal" not in found["articles"]  # its numbers are whole: nothing is known of them
    assert "retrait" not in found["article"]  # it may be known only when it has happened
    (tmp_path / "m.toml").write_text(text)
    report = import_log("csv", events, tmp_path / "log", map=tmp_path / "m.toml")
    assert (report.events, sum(report.left_out.values()), report.noted) == (895, 4, {})
    log = EventLog.read(tmp_path / "log")
    assert log.profiles is not None
    assert log.article_profiles is not None
    assert ["Culture", "Faits divers"] in log.profiles.column("sujets").to_pylist()
    assert log.article_profiles.column("rubrique")[2].as_py() == "Économie"


def test_a_click_is_the_payoff_and_not_what_a_customer_spent_before(tmp_path: Path) -> None:
    rows: list[dict[str, dict[str, Any]]] = [
        {
            "customer": {"id": i % 50, "revenue": 10.5 + i % 30},
            "shown": {"id": f"a{i % 5}", "p": 0.2},
            "outcome": {"revenue": 9.5 if i % 7 == 0 else None, "clicked": i % 3 == 0},
        }
        for i in range(200)
    ]
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    text = suggest_mapping("jsonl", file)
    found = tomllib.loads(text)
    assert (found["payoff"], found["propensity"]) == ("outcome.clicked", "shown.p")
    assert found["user"] == {"customer.revenue": "number"}
    assert '# "outcome.revenue" = "number"  # known only after the fact?' in text
    (tmp_path / "m.toml").write_text(text)
    pools: dict[str, Any] = {"candidates": "slate", "event": "n"}
    lines = [row | {"slate": ["a0", "a1", "a2", "a3", "a4"], "n": i} for i, row in enumerate(rows)]
    file.write_text("\n".join(json.dumps(row) for row in lines) + "\n")
    report = import_log("jsonl", file, tmp_path / "log", map=tmp_path / "m.toml", **pools)
    assert report.events == 200  # a column within an object is a payoff, too
    unclicked = [row | {"outcome": {"revenue": row["outcome"]["revenue"]}} for row in rows]
    file.write_text("\n".join(json.dumps(row) for row in unclicked) + "\n")
    assert tomllib.loads(suggest_mapping("jsonl", file))["payoff"] == "outcome.revenue"


def test_articles_may_be_written_with_other_decimals_than_events(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(
        "ts,item,offered,clicked,age\n" + "2026-02-01,a,a|b,1,31.5\n2026-02-02,b,a|b,0,12.25\n" * 20
    )
    (tmp_path / "items.csv").write_text("item_id;price\na;1.234,50\nb;7,25\n")
    text = suggest_mapping("csv", tmp_path / "events.csv", tmp_path / "items.csv")
    assert tomllib.loads(text)["articles"]["decimal"] == ","
    (tmp_path / "m.toml").write_text(text)
    import_log("csv", tmp_path / "events.csv", tmp_path / "log", map=tmp_path / "m.toml")
    log = EventLog.read(tmp_path / "log")
    assert log.profiles is not None
    assert log.article_profiles is not None
    assert log.article_profiles.column("price").to_pylist() == [1234.5, 7.25]
    assert set(log.profiles.column("age").to_pylist()) == {31.5, 12.25}


def test_a_payoff_with_an_odd_name_is_quoted_so_that_it_can_be_read(tmp_path: Path) -> None:
    rows = [
        {"ts": f"2026-02-01 00:{i:02d}:00", "item": "ab"[i % 2], "pool": "a|b"}
        | {"reward (EUR)": i % 3 // 2}
        for i in range(60)
    ]
    file = write(tmp_path, "csv", rows)
    (tmp_path / "m.toml").write_text(suggest_mapping("csv", file))
    assert 'payoff = "`reward (EUR)`"' in (tmp_path / "m.toml").read_text()
    assert import_log("csv", file, tmp_path / "log", map=tmp_path / "m.toml").events == 60
