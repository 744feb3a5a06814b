"""What one request costs, as it was measured: the numbers that all else here follows from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Costs:
    """Seconds and bytes. The defaults were measured on one machine; each says by what."""

    # python -m benchmarks serve: 54 and 45 µs, one process; `fleet` measured less, 30 and 24.
    front_decision: float = 54e-6
    front_payoff: float = 45e-6
    # python -m benchmarks fleet: the database's processor time for a payoff that is handed in.
    # That of a decision was not measured apart: it is a row of the same table.
    database_row: float = 22e-6
    # python -m benchmarks fleet: 59,602 decisions and 77,045 payoffs a second from the inbox to the
    # journal and the state, one after the other. How much of it the database works was not
    # measured: a half is assumed.
    fold_decision: float = 1 / 59_602
    fold_payoff: float = 1 / 77_045
    fold_in_database: float = 0.5
    # python -m benchmarks capacity measures these on a database of its own; the bytes are from a
    # quick run on a busy machine, on which they do not depend, and the time is assumed.
    batch: float = 150e-6  # the database's processor time for a batch, beside its rows
    decision_bytes: float = 414.0  # of the write-ahead log, from the front end
    payoff_bytes: float = 384.0
    folded_decision_bytes: float = 379.0  # the same, from the learner
    folded_payoff_bytes: float = 404.0
    # Not measured here: what a disk and a network of a data centre take.
    flush: float = 1e-3
    disk: float = 200e6  # bytes a second of log
    hop: float = 0.25e-3  # one way
    # The code's own: fleet.learner.fold.FOLD_SECONDS and MAX_FOLD, publish_seconds at its least.
    look: float = 0.01
    most: int = 8_000
    batch_rows: int = 1_024  # fleet.front.transport.MAX_BATCH: more wait for the next one
    publish: float = 0.05
    model: float = 2e-3  # for the learner to write a model of 20 articles, and a front end to read

    def front(self, decisions: float, payoffs: float) -> float:
        """A front end's processor time."""
        return decisions * self.front_decision + payoffs * self.front_payoff

    def folding(self, decisions: float, payoffs: float) -> float:
        """Time from the inbox to the state, one after the other."""
        return decisions * self.fold_decision + payoffs * self.fold_payoff

    def in_database(self, decisions: float, payoffs: float) -> float:
        """The database's processor time, without that for batches."""
        rows = (decisions + payoffs) * self.database_row
        return rows + self.fold_in_database * self.folding(decisions, payoffs)

    def logged(self, decisions: float, payoffs: float) -> float:
        """Bytes of the write-ahead log."""
        return decisions * (self.decision_bytes + self.folded_decision_bytes) + payoffs * (
            self.payoff_bytes + self.folded_payoff_bytes
        )
