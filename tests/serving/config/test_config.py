"""One TOML file: typed, overridden by the environment, with errors that name the key."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from docs.generate.config_reference import reference
from tests.cli.running import run, words
from tests.serving.making import Made, config

from topstory.serving.config.loading import BadConfig, policy_parameters, read_config
from topstory.serving.config.schema import Config, plain
from topstory.serving.security.secret_files import keys_of

KEY = "[[keys]]\nname = '{0}'\nsha256 = '{1:a<64}'\n"


def read(tmp_path: Path, text: str, **environment: str) -> Config:
    path = tmp_path / "topstory.toml"
    path.write_text(text)
    return read_config(path, environment)


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    assert read(tmp_path, "") == read_config(None, {}) == Config()


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        "port = 1\n[limits]\nbatch = 2",
        TOPSTORY_PORT="3",
        TOPSTORY_LIMITS__BATCH="4",
        TOPSTORY_DATA="here",
        TOPSTORY_POOLS__SPORTS__POLICY__NAME="ucb",
        TOPSTORY_CORS_ORIGINS='["https://a.example"]',
        TOPSTORY_DEBUG="1",
        HOME="/",
    )
    assert (settings.port, settings.limits.batch, settings.data) == (3, 4, "here")
    assert settings.policy_of("sports").name == "ucb"
    assert settings.cors_origins == ("https://a.example",)


def test_a_ridge_has_names_and_a_prior_chooses_the_policy(tmp_path: Path) -> None:
    found = read(tmp_path, "[policy]\nridge = 'auto'", TOPSTORY_POOLS__NEWS__POLICY__RIDGE="2.5")
    assert policy_parameters(found.policy) == {"ridge": "auto"}
    assert policy_parameters(found.policy_of("news")) == {"ridge": 2.5}
    found = read(tmp_path, "[policy]\nprior = 'prior.safetensors'")
    assert found.policy.used_name == plain(found)["policy"]["name"] == "linucb-hybrid-prior"
    found = read(tmp_path, "[policy]\nridge = 'paper'")
    assert found.policy.used_name == plain(found)["policy"]["name"] == "linucb-hybrid"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 1", "prot: unknown key"),
        ("[limits]\nbath = 1", r"limits\.bath: unknown key"),
        ("port = 'x'", r"port: Expected `int`, got `str` \(from .*topstory\.toml\)"),
        ("port = 70000", "port: Expected `int` <= 65535"),
        ("[traffic]\nlearning = 0.9", r"traffic: learning \+ deployment \+ uniform must be 1"),
        ("[policy]\nname = 'best'", r"policy\.name: 'best' cannot be served"),
        ("[policy]\nname = 'omniscient'", r"policy\.name: 'omniscient' cannot be served"),
        ("[policy]\nname = 'ucb-warm'", r"policy\.start: ucb-warm needs offsets"),
        ("[policy]\nname = 'ucb'\nepsilon = 0.1", "policy: policy 'ucb' takes no epsilon"),
        ("[policy]\nalpha = -1.0", "policy: alpha must be >= 0"),
        ("[policy]\nridge = 'large'", r"policy\.ridge: Invalid enum value 'large'"),
        (
            "[policy]\nname = 'logucb-hybrid'\nridge = 'auto'",
            "policy: the ridge of a logistic model is a number or 'paper', got 'auto'",
        ),
        ("[pools.a.policy]\nname = 'x'", r"pools\.a\.policy\.name"),
        ("[pools.a.traffic]\nuniform = 1.0", r"pools\.a\.traffic: learning"),
        ("[pools.'../x']", "pools"),
        ("pools = {}", "pools: Expected `object` of length >= 1"),
        ("[[keys]]\nname = 'a'\nsha256 = 'zz'", r"keys\[0\]\.sha256: Expected `str` matching"),
        ("[[keys]]\nname = 'a'", r"keys\[0\]: Object missing required field `sha256`"),
        ("[signing]\nk1 = 'abc'", r"signing\.k1: a secret must be 32 bytes"),
        ("[signing]\n'k.1' = 'abc'", r"signing\.k\.1: an id must be 1 to 8 letters"),
        ("window_seconds = 0.0", "window_seconds: Expected `float` > 0"),
        ("window_seconds = inf", "window_seconds: Expected `float` <= 1000000000"),
        ("[journal]\nlock_seconds = inf", r"journal\.lock_seconds: Expected `float` <= 3600"),
        ("[policy]\nalpha = inf", r"policy\.alpha: must be finite, got inf"),
        (
            KEY.format("a", "a") + KEY.format("a", "b"),
            r"keys\[1\]\.name: an earlier key also has 'a'",
        ),
        (
            KEY.format("a", "a") + KEY.format("b", "a"),
            r"keys\[1\]\.sha256: an earlier key also has",
        ),
        ("port = ", "not a TOML file"),
    ],
)
def test_an_error_names_the_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadConfig, match=message):
        read(tmp_path, text)


def test_an_error_in_the_environment_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"port: .*\(from TOPSTORY_PORT\)"):
        read(tmp_path, "", TOPSTORY_PORT="x")
    with pytest.raises(BadConfig, match=r"port\.x: port is not a table \(from TOPSTORY_PORT__X\)"):
        read(tmp_path, "port = 1", TOPSTORY_PORT__X="1")


def test_a_variable_is_converted_to_the_type_of_its_key(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        "",
        TOPSTORY_DEMO="true",
        TOPSTORY_PUBLISH_SECONDS="1",
        TOPSTORY_POLICY__ALPHA="0.5",
        TOPSTORY_HOST='"::1"',
        TOPSTORY_SIGNING=f"{{k1 = '{'ab' * 32}'}}",
    )
    assert (config.demo, config.publish_seconds) == (True, 1.0)
    assert policy_parameters(config.policy) == {"alpha": 0.5}
    assert (config.host, config.signing) == ("::1", {"k1": "ab" * 32})


def test_the_file_is_not_converted(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"port: Expected `int`, got `str` \(from .*\.toml\)"):
        read(tmp_path, "port = '80'", TOPSTORY_DATA="here")


def test_a_name_made_of_digits_is_a_name(tmp_path: Path) -> None:
    settings = read(tmp_path, "", TOPSTORY_DATA="2024", TOPSTORY_FEATURES="007", TOPSTORY_PORT="9")
    assert (settings.data, settings.features, settings.port) == ("2024", "007", 9)


def test_a_new_data_folder_is_private(tmp_path: Path) -> None:
    Made(config(tmp_path / "data")).crash()
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_the_journal_records_no_secrets() -> None:
    digest = "ab" * 32
    settings = msgspec.convert(
        {"signing": {"k1": "cd" * 32}, "keys": [{"name": "web", "sha256": digest}]}, Config
    )
    text = msgspec.json.encode(plain(settings))
    assert b"web" in text
    assert digest.encode() not in text
    assert b"cdcd" not in text


def test_the_configuration_page_is_up_to_date() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "configuration.md"
    assert page.read_text("utf-8") == reference(), "stale: run python -m docs.generate"


def test_every_key_has_its_meaning() -> None:
    for line in reference().splitlines():
        if line.startswith("| `"):
            assert len(line.split(" | ")[2]) > 5, line


def test_check_config_reports_errors(tmp_path: Path) -> None:
    path = tmp_path / "topstory.toml"
    path.write_text("port = 9")
    assert "OK; pools: front" in run("serve", "--config", path, "--check-config").stdout
    path.write_text("prot = 9")
    result = run("serve", "--config", path, "--check-config", status=1)
    assert "prot: unknown key" in words(result.output)
    for text, key in (
        ("features = '/no'", "features:"),
        ("[policy]\nstart = '/no'", "policy.start:"),
    ):
        path.write_text(f"data = '{tmp_path}'\n{text}")
        result = run("serve", "--config", path, "--check-config", status=1)
        assert f"{key} " in words(result.output)
        assert "/no" in words(result.output)


def test_the_first_key_is_printed_before_it_is_stored(tmp_path: Path) -> None:
    settings, path = Config(data=str(tmp_path)), tmp_path / "keys.toml"

    def interrupted(words: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keys_of(settings, interrupted)
    assert not path.exists()
    printed: list[str] = []
    keys, made = keys_of(settings, printed.append)
    assert made
    assert sha256(printed[0].split()[-1].encode()).hexdigest() == keys[0].sha256
    assert path.stat().st_mode & 0o777 == 0o600
    assert keys_of(settings, printed.append) == (keys, False)
    assert len(printed) == 1
    path.write_text("")
    with pytest.raises(BadConfig, match=r"keys\.toml: the file has no keys\. Delete it"):
        keys_of(settings)


def test_a_new_key_is_printed_with_its_lines_for_the_configuration(tmp_path: Path) -> None:
    printed = run("new-key", "web", "--role", "decide").stdout
    key, _, entry = printed.partition("\n\n")
    settings = read(tmp_path, entry)
    assert settings.keys[0].name == "web"
    assert settings.keys[0].roles == ("decide",)
    assert key not in entry
    assert key.startswith("ts_")
    run("new-key", "web", "--role", "king", status=2)
