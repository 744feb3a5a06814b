"""Sealed files: safetensors, written without a copy."""

from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from topstory.sealed import Seal

SEAL = Seal(kind="thing", key="thing", version=1, writer="a test", format="topstory-test")
ARRAYS = {
    "matrix": np.arange(12.0).reshape(3, 4).T,  # not in C order
    "slots": np.array([3, 1, 2], np.int32),
    "keys": np.array([2**63 + 1], np.uint64),
    "single": np.array([0.5], np.float32),
    "flags": np.array([1, 0, 1], np.uint8),
    "long": np.array([-(2**40)], np.int64),
    "truth": np.array([True, False]),
    "number": np.array(2.5),
}


def test_the_library_reads_what_was_written_here(tmp_path: Path) -> None:
    path = tmp_path / "file"
    SEAL.write(path, {"a": 1}, ARRAYS | {"nothing": np.zeros((0, 3))})
    by_library = load_file(path)
    by_us = SEAL.read(path, lambda described, arrays: arrays)
    for found in (by_library, by_us):
        assert found.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
            np.testing.assert_array_equal(found[name], array)
