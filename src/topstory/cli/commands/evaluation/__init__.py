"""Commands that say what a policy would have earned, and which to take."""
