"""The Open Bandit Dataset, and Open Bandit Pipeline."""
