"""From bytes to rows to a checked batch of events."""
