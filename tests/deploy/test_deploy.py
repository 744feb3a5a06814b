"""The files in deploy/ are what their tools accept, and agree with the service that they start."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import crossplane
import promql_parser
import pytest
import yaml
from tests.serving.pages.in_process import site

from topstory.serving.config.limits import LimitsConfig
from topstory.serving.config.loading import read_config

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "topstory"
COMPOSE = DEPLOY / "compose" / "compose.yaml"
MONITORING = (ROOT / "docs" / "operations" / "monitoring.md").read_text()
METRIC = re.compile(r"\btopstory_[a-z_]+")
FLEET = '[journal]\nurl = "postgresql://topstory@db/topstory"\n\n[pools.front]\n'


def run(*command: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run one of the development tools."""
    tools = Path(sys.executable).parent
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", **variables},
    )


def accepted(*command: object) -> str:
    done = run(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rendered(folder: Path, *options: str, config: str = FLEET) -> dict[str, dict[str, Any]]:
    """What the chart makes, by kind and name."""
    path = folder / "topstory.toml"
    path.write_text(config)
    text = accepted("helm", "template", "site", CHART, "--set-file", f"config={path}", *options)
    (folder / "rendered.yaml").write_text(text)
    return {
        f"{each['kind']}/{each['metadata']['name']}": each
        for each in yaml.safe_load_all(text)
        if each
    }


def test_linters_find_nothing() -> None:
    accepted("hadolint", DEPLOY / "Dockerfile")
    accepted("shellcheck", *sorted(DEPLOY.rglob("*.sh")))
    accepted("check-jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE)


def test_an_image_starts_from_compiled_kernels_though_its_root_is_read_only(tmp_path: Path) -> None:
    compiled, cache, bin_ = tmp_path / "compiled", tmp_path / "cache", tmp_path / "bin"
    for folder in (compiled, cache, bin_):
        folder.mkdir()
    (compiled / "kernel.nbi").write_text("compiled")
    (bin_ / "topstory").write_text('#!/bin/sh\necho "$@"; env\n')
    (bin_ / "topstory").chmod(0o755)
    compiled.chmod(0o555)
    done = run(
        *(DEPLOY / "start.sh", "serve", "--config", "a file"),
        TOPSTORY_KERNELS=str(compiled),
        NUMBA_CACHE_DIR=str(cache),
        PATH=f"{bin_}{os.pathsep}{os.environ['PATH']}",
    )
    assert done.stdout.splitlines()[0] == "serve --config a file"
    assert (cache / "kernel.nbi").read_text() == "compiled"
    assert "TOPSTORY_KERNELS" not in done.stdout  # the configuration would refuse it


def test_the_image_holds_what_it_copies() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    for line in (DEPLOY / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY") and "--from" not in line:
            *sources, _ = (part for part in line.split()[1:] if not part.startswith("--"))
            for source in sources:
                assert (ROOT / source).exists(), source
                assert f"!{source.removeprefix('./')}" in ignored, source


def test_the_unit_is_what_systemd_reads(tmp_path: Path) -> None:
    unit = tmp_path / "topstory.service"
    text = (DEPLOY / "systemd" / "topstory.service").read_text()
    unit.write_text(text.replace("/opt/topstory/bin/topstory", "/bin/true"))
    done = run("systemd-analyze", "verify", "--man=no", unit)
    assert "topstory.service" not in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr


def test_the_chart_makes_what_kubernetes_takes(tmp_path: Path) -> None:
    accepted("helm", "lint", "--quiet", CHART, "--set", "config=a", "--set", "replicas=1")
    made = rendered(tmp_path, "--set", "ingress.enabled=true", "--set", "ingress.host=news.example")
    accepted("kubernetes-validate", "--strict", "--quiet", tmp_path / "rendered.yaml")
    assert "PodDisruptionBudget/site-topstory" in made
    pod = made["StatefulSet/site-topstory"]["spec"]["template"]["spec"]
    assert pod["enableServiceLinks"] is False
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    variables = {each["name"]: each["value"] for each in container["env"]}
    config = tmp_path / "from_secret.toml"
    config.write_text(made["Secret/site-topstory-config"]["stringData"]["topstory.toml"])
    read = read_config(config, variables)
    assert (read.port, read.role) == (container["ports"][0]["containerPort"], "all")
    written = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert variables["TOPSTORY_DATA"] in written
    image = (DEPLOY / "Dockerfile").read_text()
    (cache,) = re.findall(r"NUMBA_CACHE_DIR=(/var\S+)", image)
    assert cache in written
    assert f"USER {pod['securityContext']['runAsUser']}:" in image


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "set config to a configuration in TOML"),
        (["--set", "config=a", "--set", "existingSecret=b"], "not both"),
        (["--set", "config=a"], "several replicas need PostgreSQL"),
        (
            [*("--set", "config=a", "--set", "replicas=1"), "--set", "ingress.enabled=true"],
            "ingress.host: the site's name",
        ),
    ],
)
def test_wrong_values_of_the_chart_are_refused_in_words(options: list[str], says: str) -> None:
    done = run("helm", "template", "site", CHART, *options)
    assert done.returncode != 0
    assert says in done.stderr


def test_prepared_secrets_make_a_configuration_and_are_not_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    printed = accepted("sh", DEPLOY / "compose" / "prepare.sh", folder)
    config = read_config(folder / "topstory.toml", {})
    assert config.journal.url is not None
    assert config.role == "all"
    roles = {key.name: set(key.roles) for key in config.keys}
    assert roles["prometheus"] == {"read"}
    assert roles["site"] == {"decide", "feedback"}
    assert folder.stat().st_mode & 0o077 == 0
    for path in folder.iterdir():
        assert path.read_text() not in printed
    before = (folder / "topstory.toml").read_text()
    assert run("sh", DEPLOY / "compose" / "prepare.sh", folder).returncode == 1
    assert (folder / "topstory.toml").read_text() == before
    mounted = yaml.safe_load(COMPOSE.read_text())["secrets"]
    for secret in mounted.values():
        assert (folder / Path(secret["file"]).name).exists(), secret


def test_what_compose_mounts_is_there() -> None:
    document = yaml.safe_load(COMPOSE.read_text())
    for service in document["services"].values():
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            assert source in document["volumes"] or (COMPOSE.parent / source).exists(), mount


def test_nginx_knows_every_front_end_and_leaves_limits_to_the_service() -> None:
    parsed = crossplane.parse(str(DEPLOY / "nginx" / "topstory.conf"), check_ctx=False)
    assert parsed["status"] == "ok", parsed["errors"]
    sections = parsed["config"][0]["parsed"]
    blocks = {block["directive"]: block["block"] for block in reversed(sections)}
    servers = {line["args"][0] for line in blocks["upstream"] if line["directive"] == "server"}
    nodes = {name for name in yaml.safe_load(COMPOSE.read_text())["services"] if "topstory" in name}
    assert servers == {f"{name}:8000" for name in nodes}
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    assert set(scraped["scrape_configs"][0]["static_configs"][0]["targets"]) == servers
    ports = {
        line["args"][0]
        for each in sections
        for line in each["block"]
        if "listen" in line["directive"]
    }
    (learner,) = scraped["scrape_configs"][1]["static_configs"][0]["targets"]
    published = yaml.safe_load(COMPOSE.read_text())["services"]["nginx"]["ports"]
    assert learner.removeprefix("nginx:") in ports
    assert not any(learner.removeprefix("nginx:") in port for port in published)
    (size,) = (line["args"] for line in blocks["server"] if "max_body" in line["directive"])
    assert int(size[0].removesuffix("m")) * 1_000_000 >= LimitsConfig().policy_bytes


def queries() -> Iterator[str]:
    """What the dashboard and the alerts ask Prometheus."""
    board = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield target["expr"].replace("$pool", "front")
    alerts = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
    for rule in alerts["groups"][0]["rules"]:
        yield rule["expr"]


def test_every_query_asks_for_what_the_service_tells(tmp_path: Path) -> None:
    with site(tmp_path) as served:
        facts = {"title": "A story", "features": [0.0, 1.0]}
        assert served.ask("PUT", "/v1/pools/front/articles/a", "edit", json=facts).is_success
        served.visit(4, 1)
        page = served.get("/metrics", "read").text
    told = set(METRIC.findall(page))
    assert {name for name in told if name in MONITORING}  # the page of docs names the same
    labels = {
        (name, label)
        for name, inside in re.findall(r"^(topstory_[a-z_]+)\{(.*)\}", page, re.MULTILINE)
        for label in re.findall(r'(\w+)="', inside)
    }
    asked = sorted(set(queries()))
    assert len(asked) > 20
    for query in asked:
        promql_parser.parse(query)
        for name in METRIC.findall(query):
            base = name.removesuffix("_bucket")
            assert name in told or base in told or base in MONITORING, query
        for name, inside in re.findall(r"\b(topstory_[a-z_]+)\{([^}]*)\}", query):
            for label in re.findall(r"(\w+)\s*=", inside):
                assert (name, label) in labels, (query, label)


def test_the_example_of_a_fleet_is_a_configuration() -> None:
    tomllib.loads(FLEET)
    read_config(DEPLOY / "compose" / "topstory.toml", {})
