"""The service keeps what /openapi.json promises: nothing generated from it leads to a 5xx."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.features.worlds import little_builder
from tests.serving.processes import Served

import topstory as ts
from topstory.serving.api.endpoints import ENDPOINTS
from topstory.serving.api.messages import ArticleRequest
from topstory.serving.config.limits import LimitsConfig
from topstory.serving.http.openapi import openapi

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
    """One process with a feature model: there a user may be a raw profile too."""
    settings: dict[str, Any] = {"demo": True, "context": 6, "workers": workers}
    if workers == 1:
        little_builder().save(tmp_path / "features.safetensors")
        settings["features"] = str(tmp_path / "features.safetensors")
    with Served(tmp_path, **settings) as served:
        if workers == 1:
            with ts.Client(served.url, served.key, timeout=60) as client:
                article = ArticleRequest(profile={"tags": ["on tea"]})
                client.put_article("front", "tea", article)
                assert client.decide({"likes": ["tea"]}).article
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
        assert f"Tested: {sum(each.described for each in ENDPOINTS)}" in done.stdout
    assert "Traceback" not in served.errors()


def test_the_document_is_made_of_the_table_of_endpoints() -> None:
    document = openapi(("front",), 6, LimitsConfig())
    described = {
        (operation["operationId"], method.upper(), path)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method != "parameters"
    }
    assert described == {(e.name, e.method, e.path) for e in ENDPOINTS if e.described}
    schemas = document["components"]["schemas"]
    assert {e.request.__name__ for e in ENDPOINTS if e.request is not None} <= set(schemas)
    assert schemas["DecideRequest"]["required"] == ["user"]
    assert schemas["DecideRequest"]["additionalProperties"] is False


def test_the_document_contains_the_configured_limits() -> None:
    described = openapi(("front",), 6, LimitsConfig(batch=7, magnitude=20.0))
    for path in ("/v1/decide", "/v1/feedback"):
        body = described["paths"][path]["post"]["requestBody"]["content"]["application/json"][
            "schema"
        ]
        assert [kind["maxItems"] for kind in body["anyOf"] if "maxItems" in kind] == [7]
    schemas = described["components"]["schemas"]
    bounds = {"minimum": -20.0, "maximum": 20.0}
    assert bounds.items() <= schemas["FeedbackRequest"]["properties"]["payoff"].items()
    for kind, field in (("DecideRequest", "user"), ("ArticleRequest", "features")):
        kinds = schemas[kind]["properties"][field]["anyOf"]
        (numbers,) = (each for each in kinds if each["type"] == "array")
        assert bounds.items() <= numbers["items"].items()
