"""Replay: what a policy would have earned on a log, one run or many."""
