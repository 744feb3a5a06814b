"""Whether two policies have learned the same."""

import numpy as np

import topstory as ts


def same_model(one: ts.Policy, other: ts.Policy) -> bool:
    """To the bit, what is cached for scoring aside."""
    first, second = one.model.learned(), other.model.learned()
    return first.keys() == second.keys() and all(
        np.array_equal(array, second[name]) for name, array in first.items()
    )
