"""Other people's logs, in and out."""
