"""The learner's state in memory that every worker maps."""
