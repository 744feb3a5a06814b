"""Counter-based random numbers: a draw depends on (seed, event, key) alone, not on earlier draws.

So a scan may skip articles, and an ignored event its draws, without changing any later choice.
"""

import numpy as np

from topstory.kernels.compilation import inlined

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 1.0 / 9007199254740992.0  # 2**-53

EXPLORE = np.uint64(0x243F6A8885A308D3)
LEARN = np.uint64(0x13198A2E03707344)
KEEP = np.uint64(0xA4093822299F31D0)
SAMPLE = np.uint64(0x082EFA98EC4E6C89)


@inlined
def mix(z: np.uint64) -> np.uint64:
    """Scramble 64 bits (the finaliser of SplitMix64, Steele, Lea and Flood 2014)."""
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@inlined
def stream(seed: np.uint64, event: int) -> np.uint64:
    """The random stream of one event: the root of all draws made for it."""
    return mix(mix(seed) + (np.uint64(event) + np.uint64(1)) * _GOLDEN)


@inlined
def priority(root: np.uint64, key: np.uint64) -> np.uint64:
    """An article's place in the event's random order: of equal scores the highest wins."""
    return mix(root ^ key)


@inlined
def unit(root: np.uint64, key: np.uint64) -> float:
    """A uniform draw in [0, 1)."""
    return float(mix(root ^ key) >> np.uint64(11)) * _TO_UNIT


@inlined
def open_unit(root: np.uint64, key: np.uint64) -> float:
    """A uniform draw in (0, 1), for an article's own noise: independent of its priority."""
    return unit(root, key ^ SAMPLE) + 0.5 * _TO_UNIT
