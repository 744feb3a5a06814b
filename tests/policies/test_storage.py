"""A saved policy comes back to the bit; anything else is refused with a clear error."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.policies.stored_policies import FIXTURES, GENERAL, general, trained
from tests.policies.test_policies import LIVE, POOL, make, train

import topstory as ts

FIRST = {
    *("random", "egreedy", "ucb", "egreedy-warm", "ucb-warm", "egreedy-seg", "ucb-seg"),
    *("egreedy-disjoint", "linucb-disjoint", "egreedy-hybrid", "linucb-hybrid"),
}


def choices(policy: ts.Policy) -> list[Any]:
    random, found = np.random.default_rng(5), []
    for _ in range(30):
        x = np.append(random.random(3), 1.0)
        found.append((policy.choose(x, POOL), policy.scores(x, POOL).tolist()))
        policy.learn(x, found[-1][0].article, float(random.random() < 0.3))
    return found


@pytest.mark.parametrize("name", LIVE)
@pytest.mark.parametrize("trials", [0, 40])
def test_a_loaded_policy_goes_on_as_if_it_had_never_stopped(
    name: str, trials: int, tmp_path: Path
) -> None:
    policy = make(name, seed=3)
    train(policy, trials)
    policy.add_article("fog", [0.3, 0.3, 1.0])
    policy.remove_article("fog")
    policy.save(tmp_path / "state.safetensors")
    loaded = ts.Policy.load(tmp_path / "state.safetensors")
    assert repr(loaded) == repr(policy)
    assert loaded.decisions == policy.decisions
    for field, array in policy.model.arrays().items():
        np.testing.assert_array_equal(array, loaded.model.arrays()[field])
    assert choices(loaded) == choices(policy)


def test_a_replayed_omniscient_policy_can_be_kept(tmp_path: Path) -> None:
    log = ts.EventLog.from_arrays([[1.0]] * 4, [["a", "b"]], [0] * 4, ["a", "b"] * 2, [0, 1, 0, 1])
    policy = ts.replay(ts.policy("omniscient"), log).policy
    policy.save(tmp_path / "p.safetensors")
    assert ts.Policy.load(tmp_path / "p.safetensors").choose([1.0], ["a", "b"]).article == "b"


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("policy-v1-*.safetensors")), ids=str)
def test_a_file_that_an_earlier_version_wrote_still_loads(path: Path) -> None:
    name = path.stem.removeprefix("policy-v1-")
    # Warm policies averaged payoffs then, and a stored one goes on to do so.
    policy = trained(name, average="payoff") if name.endswith("-warm") else trained(name)
    loaded = ts.Policy.load(path)
    x = np.array([0.3, 0.7, 0.0, 1.0])
    assert loaded.decisions == 40
    np.testing.assert_allclose(loaded.scores(x, POOL), policy.scores(x, POOL), rtol=1e-12)


@pytest.mark.parametrize("name", GENERAL)
def test_a_general_form_that_an_earlier_version_wrote_still_loads(name: str) -> None:
    policy, loaded = general(name), ts.Policy.load(FIXTURES / f"policy-v2-{name}.safetensors")
    random, pool = np.random.default_rng(6), ["rain", "sun", "fog"]
    for _ in range(20):
        x = np.append(random.random(3), 1.0)
        np.testing.assert_allclose(loaded.scores(x, pool), policy.scores(x, pool), rtol=1e-12)
        for each in (loaded, policy):
            each.learn(x, "rain", 1.0)


@pytest.mark.parametrize("name", ["active", "current", "edited", "clock"])
def test_places_that_are_not_there_are_refused(name: str, tmp_path: Path) -> None:
    """Kernels follow them, and would read what is beyond."""
    policy = general("edited")
    policy.scores([0.1, 0.2, 0.3, 1.0], ["rain", "sun"])
    array = getattr(policy.model.state, name)
    for bad in (10_000, -1):
        kept = array.copy()
        array[1] = bad
        policy.save(tmp_path / "p.safetensors")
        array[:] = kept
        with pytest.raises(ValueError, match=f"{name}: not all of it is (places|counts)"):
            ts.Policy.load(tmp_path / "p.safetensors")


def test_no_file_of_an_earlier_version_was_removed() -> None:
    kept = {path.stem.removeprefix("policy-v1-") for path in FIXTURES.glob("policy-v1-*")}
    assert kept >= FIRST


def test_functions_are_given_again(tmp_path: Path) -> None:
    def sign(users: Any) -> Any:
        return users[:, 0] > 0.5

    policy = ts.policy("ucb-seg", segments=2, assignment=sign)
    policy.learn([0.7, 1.0], "rain", 1.0)
    policy.save(tmp_path / "p.safetensors")
    loaded = ts.Policy.load(tmp_path / "p.safetensors", assignment=sign)
    assert loaded.estimates([0.9, 1.0], ["rain"]) == [1.0]
    with pytest.raises(ValueError, match="assignment: a function is not stored"):
        ts.Policy.load(tmp_path / "p.safetensors")


def test_parameters_from_a_numpy_grid_are_kept(tmp_path: Path) -> None:
    for policy in (
        ts.policy("linucb-hybrid", alpha=np.float32(0.5), ridge=np.int64(3), seed=int(np.int64(7))),
        ts.policy("egreedy", epsilon=np.float64(0.25)),
    ):
        policy.save(tmp_path / "p.safetensors")
        assert repr(ts.Policy.load(tmp_path / "p.safetensors")) == repr(policy)


def test_damage_anywhere_is_noticed(tmp_path: Path) -> None:
    policy = make("linucb-hybrid")
    train(policy, 10)
    path = tmp_path / "p.safetensors"
    policy.save(path)
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for place in [0, 7, 8, 40, len(whole) - 1, *random.integers(0, len(whole), 60).tolist()]:
        broken = bytearray(whole)
        broken[place] ^= 0x11
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=r"p\.safetensors: "):
            ts.Policy.load(path)
    for length in (0, 5, 100, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="damaged"):
            ts.Policy.load(path)


def test_foreign_and_newer_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.safetensors"
    save_file({"w": np.zeros(3)}, path)
    with pytest.raises(ValueError, match="not a topstory policy"):
        ts.Policy.load(path)
    save_file({"w": np.zeros(3)}, path, {"format": "topstory-policy", "version": "9"})
    with pytest.raises(ValueError, match="policy format 9, but this topstory reads up to 2"):
        ts.Policy.load(path)
    path.write_text("id,click\n1,0\n")
    with pytest.raises(ValueError, match="not a safetensors file, or damaged"):
        ts.Policy.load(path)
    with pytest.raises(FileNotFoundError):
        ts.Policy.load(tmp_path / "nowhere")


def test_a_place_that_cannot_be_written_is_named_itself(tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere" / "p", tmp_path, tmp_path / ("p" * 250)):
        with pytest.raises(OSError, match=r".") as failed:
            make("ucb").save(place)
        assert failed.value.filename == str(place)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.safetensors"
    policy = make("ucb")
    policy.save(path)
    old = path.read_bytes()

    def fail(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("topstory.sealed._header", fail)
    with pytest.raises(OSError, match="disk full"):
        policy.save(path)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["p.safetensors"]
