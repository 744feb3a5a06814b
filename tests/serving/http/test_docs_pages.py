"""The curl examples of docs/guides/serving.md are true."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.serving.processes import Served
from tests.test_docs import fences

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "serving.md"


def test_the_curl_examples_run(demo: Served) -> None:
    scripts = [fence.body for fence in fences(PAGE.read_text("utf-8")) if fence.language == "bash"]
    assert len(scripts) == 4
    for script in scripts:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script.replace("curl -s", "curl -sS --fail")],
            env={**os.environ, "URL": demo.url, "KEY": demo.key},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, (script, done.stdout, done.stderr)
        assert '"error"' not in done.stdout
