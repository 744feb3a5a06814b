"""The state: a pure function of the journal, with its snapshots and its recovery."""
