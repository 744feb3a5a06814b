"""Commands that learn from a log: features, priors, policies."""
