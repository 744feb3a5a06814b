"""What the operator sets: the TOML file, the environment, the feature model."""
