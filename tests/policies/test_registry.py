"""What is registered can be made, stored, tuned, drawn, served, and found in the docs."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from tests.policies.stored_policies import FIXTURES, write
from tests.twins import TWINS

import topstory as ts
from topstory.policies.registry import EXPLORERS, MODELS, NUMBERS, REGISTRY
from topstory.report.style import style_of
from topstory.serving.config.schema import PolicyConfig

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("entry", [*MODELS.values(), *EXPLORERS.values()], ids=lambda e: e.name)
def test_an_entry_has_its_class_s_own_name_and_parameters(entry: object) -> None:
    assert isinstance(entry, type(MODELS["warm"]) | type(EXPLORERS["greedy"]))
    found = entry.load()
    assert found.name == entry.name
    takes = inspect.signature(found).parameters
    for parameter in entry.parameters:
        if parameter.name != "delta":  # turned into an alpha
            assert parameter.name in takes
            assert parameter.required == (takes[parameter.name].default is inspect.Parameter.empty)


def test_every_model_has_a_plain_twin() -> None:
    assert TWINS.keys() == MODELS.keys()


def test_what_is_tuned_has_values_to_try() -> None:
    for entry in REGISTRY.values():
        if entry.tuned is not None:
            assert len(entry.tuned.grid) >= 2
            assert entry.tuned.metavar is not None


def test_every_number_is_a_key_of_the_service_s_configuration() -> None:
    keys = set(PolicyConfig.__struct_fields__) - {"name", "seed", "start", "prior"}
    assert keys == {name for name, parameter in NUMBERS.items() if parameter.served}


def test_no_two_policies_are_drawn_alike() -> None:
    learners = [name for name, entry in REGISTRY.items() if entry.tuned]
    assert len({(style_of(n).colour, style_of(n).dash) for n in learners}) == len(learners)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_policy_has_a_line_in_the_documentation(name: str) -> None:
    assert f"`{name}`" in next(DOCS.rglob("policies.md")).read_text("utf-8")


def test_names_and_help_texts_are_there_without_numba() -> None:
    script = "import sys, topstory.policies.registry; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_a_stored_policy_of_an_earlier_version_is_never_overwritten(tmp_path: Path) -> None:
    written = write("ucb", tmp_path)
    assert ts.Policy.load(written).decisions == 40
    with pytest.raises(FileExistsError, match="it stays as it is"):
        write("ucb", FIXTURES)
