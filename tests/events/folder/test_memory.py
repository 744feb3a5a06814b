"""A log that does not fit into memory is refused before it is read, and says what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from topstory.cli.app import app
from topstory.events import EventLog
from topstory.events.folder import memory
from topstory.events.folder.contents import read_contents
from topstory.events.folder.parts import read_parts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    log = EventLog.from_arrays(
        np.ones((1_000, 50)),
        [["a", "b"]],
        np.zeros(1_000, int),
        ["a", "b"] * 500,
        np.zeros(1_000),
    )
    log.write(tmp_path / "log")
    return tmp_path / "log"


def test_a_log_larger_than_memory_is_refused_with_its_size(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = memory.log_bytes(read_contents(folder))
    assert needed == 1_000 * (18 + 50 * 4)
    monkeypatch.setattr(memory, "memory_bytes", lambda: needed - 1)
    with pytest.raises(
        MemoryError, match=r"its 1,000 events take 0\.000218 GB of memory, and this"
    ):
        EventLog.read(folder)
    done = CliRunner().invoke(app, ["replay", str(folder), "--policy", "ucb"])
    assert done.exit_code == 1
    assert "use a larger machine, or a part of the log" in " ".join(done.output.split())
    assert sum(len(part) for part in read_parts(folder, 0, 1_000)) == 1_000  # parts are read
    monkeypatch.setattr(memory, "memory_bytes", lambda: needed)
    assert len(EventLog.read(folder)) == 1_000


def test_this_machine_says_how_much_memory_it_has() -> None:
    found = memory.memory_bytes()
    assert found is None or found > 1e8
