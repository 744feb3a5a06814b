"""The logs of a study: where they come from, and what is in them."""
