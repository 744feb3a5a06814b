"""The configuration: its schema, and how it is loaded."""
