"""The arithmetic of each model, and what all of them answer."""
