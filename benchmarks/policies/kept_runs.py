"""Results that are kept as they come, so that a long run can be stopped and taken up again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


class KeptRuns:
    """A file with a JSON line for each result; what it has is not computed again.

    It trusts that the code is the same: remove the file after a change.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        whole = (line for line in lines if line.endswith("}"))  # a kill may have cut the last one
        self.known: dict[str, Any] = {k: v for line in whole for k, v in json.loads(line).items()}

    def get(self, what: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """The result of `what`, from the file if it is there."""
        key = json.dumps(what, sort_keys=True)
        if key not in self.known:
            self.known[key] = compute()
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({key: self.known[key]}) + "\n")
        return self.known[key]
