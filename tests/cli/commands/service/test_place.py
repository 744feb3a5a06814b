"""`topstory place`: the articles of a log, in a running service."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.cli.running import answer, run
from tests.serving.processes import Served

import topstory as ts
from topstory.serving.api.messages import ArticleRequest

POOLS = [["a", "b"], ["b", "c"]]


def test_a_service_gets_the_articles_that_the_log_ends_with_and_keeps_those_it_has(
    tmp_path: Path,
) -> None:
    described = {key: [0.5 * i, 1.0] for i, key in enumerate("abc")}
    log = ts.EventLog.from_arrays(
        np.tile([0.1, 0.2, 0.3, 1.0], (4, 1)),
        *(POOLS, [0, 0, 1, 1], ["a", "b", "b", "c"], [0, 1, 0, 1]),
        articles=described,
    )
    log.write(tmp_path / "log")
    key = tmp_path / "key"
    with Served(tmp_path / "service") as served:
        key.write_text(served.key)
        served.config.write_text(
            served.config.read_text().replace("port = 0", f"port = {served.address[1]}")
        )
        command = ("place", served.config, tmp_path / "log", "--key-file", key)
        with ts.Client(served.url, served.key, timeout=60) as client:
            client.put_article("front", "b", ArticleRequest(features=(9.0, 1.0), title="Kept"))
            assert answer(*command) == {"pool": "front", "placed": ["c"], "there": 1}
            assert (
                "Placed 1 articles in pool 'front'; 2 more were there"
                in run(*command, "--all").stdout
            )
            views = {view.id: view for view in client.articles("front")}
        assert {name: view.features for name, view in views.items()} == {
            "a": (0.0, 1.0),
            "b": (9.0, 1.0),
            "c": (1.0, 1.0),
        }
        assert views["b"].title == "Kept"
        refused = run(*command, "--pool", "side", status=1).output
        assert "the service refused it: there is no pool 'side'" in " ".join(refused.split())
    assert "Traceback" not in run(*command, status=1).output  # nobody answers any more
