"""What /openapi.json promises is true: nothing made from it brings the service to a 5xx."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.serving.processes import Served

from topstory.serving.openapi import TYPES, openapi

EXAMPLES = int(os.environ.get("SOAK_EXAMPLES", "8"))  # `make soak` sets 300, and every phase
PHASES = "coverage,fuzzing" if "SOAK_EXAMPLES" in os.environ else "fuzzing"
CHECKS = (
    *("not_a_server_error", "response_schema_conformance"),
    *("content_type_conformance", "status_code_conformance"),
)


@pytest.mark.parametrize("workers", [1, 2])
def test_schemathesis_finds_no_5xx_and_no_answer_that_is_not_described(
    tmp_path: Path, workers: int
) -> None:
    with Served(tmp_path, demo=True, context=6, workers=workers) as served:
        done = subprocess.run(
            [
                *(Path(sys.executable).with_name("st"), "run", f"{served.url}/openapi.json"),
                *("--header", f"Authorization: Bearer {served.key}", "--no-color"),
                *("--checks", ",".join(CHECKS), "--phases", PHASES),
                *(
                    "--max-examples",
                    f"{EXAMPLES // workers}",
                    "--generation-deterministic",
                    "--warnings",
                    "off",
                ),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
        assert "Tested: 10" in done.stdout
    assert "Traceback" not in served.errors()


def test_the_document_is_made_of_the_types_that_decode() -> None:
    schemas = openapi(("front",), 6)["components"]["schemas"]
    assert {kind.__name__ for kind in TYPES} <= set(schemas)
    assert schemas["DecideRequest"]["required"] == ["user"]
    assert schemas["DecideRequest"]["additionalProperties"] is False
