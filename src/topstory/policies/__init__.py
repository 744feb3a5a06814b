"""A policy is a model and an explorer; the paper's twelve have names."""

from topstory.policies.policy import Choice, Policy
from topstory.policies.registry import REGISTRY, policy

__all__ = ["REGISTRY", "Choice", "Policy", "policy"]
