"""Vowpal Wabbit's formats: dsjson and text."""
