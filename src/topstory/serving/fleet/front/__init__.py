"""A front end of a fleet: answers requests, and hands in what it decided."""
