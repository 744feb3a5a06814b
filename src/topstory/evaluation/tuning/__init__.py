"""Which parameter to run a policy with."""
