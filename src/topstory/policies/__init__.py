"""A policy is a model and an explorer; the registry names them all."""

from typing import TYPE_CHECKING, Any

from topstory.policies.registry import EXPLORERS, MODELS, REGISTRY

if TYPE_CHECKING:
    from topstory.policies.policy import Choice, Policy

__all__ = ["EXPLORERS", "MODELS", "REGISTRY", "Choice", "Policy"]


def __getattr__(name: str) -> Any:
    # Imported when first used: a policy needs numba, the registry's names and help texts do not.
    if name in ("Choice", "Policy"):
        from topstory.policies import policy

        return getattr(policy, name)
    raise AttributeError(f"module 'topstory.policies' has no attribute {name!r}")
