"""The report of a study: its numbers and sentences, as records."""
