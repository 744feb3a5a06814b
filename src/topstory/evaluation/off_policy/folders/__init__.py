"""Evaluation of a log that is in no one memory: its parts are read and summed by workers."""
