"""The logs of a study: where they come from and what they are."""
