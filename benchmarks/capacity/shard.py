"""One shard, simulated: front ends, a primary with group commit, and a learner that folds.

It follows the fleet's protocol: a front end scores all that waits in one turn, and has one batch on
its way to the database; a batch is answered once its commit is on disk; the learner takes what is
there, writes it into the journal, folds it, and publishes now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.capacity.costs import Costs
from benchmarks.capacity.events import Cores, LogDisk, Simulation

Times = NDArray[np.float64]


class Rows(NamedTuple):
    """Some decisions and payoffs."""

    decisions: int
    payoffs: int


class Primary:
    """The database: cores for statements, and one log."""

    def __init__(self, simulation: Simulation, costs: Costs, cores: Cores) -> None:
        self._simulation, self._costs, self.cores = simulation, costs, cores
        self.disk = LogDisk(simulation, costs.flush, costs.disk)

    def execute(self, work: float, size: float, then: Callable[[], None]) -> None:
        """A statement from another machine that works so long and commits so many bytes."""
        costs = self._costs

        def answer() -> None:
            self._simulation.after(costs.hop, then)

        def arrived() -> None:
            self.cores.use(costs.batch + work, lambda: self.disk.commit(size, answer))

        self._simulation.after(costs.hop, arrived)


class FrontEnd:
    """One core. Requests come at given times; `payoff` says which of them are payoffs."""

    def __init__(
        self,
        simulation: Simulation,
        costs: Costs,
        primary: Primary,
        core: Cores,
        arrivals: Times,
        payoff: NDArray[np.bool_],
        committed: Callable[[Rows, float], None],
    ) -> None:
        self._simulation, self._costs, self._primary = simulation, costs, primary
        self.core, self._committed = core, committed
        self.arrivals, self._payoffs = arrivals, np.concatenate(([0], np.cumsum(payoff)))
        self.answered: Times = np.full(len(arrivals), np.nan)
        self._next = self._scored = self._sent = 0  # requests: taken, scored, handed in
        self._sending = False
        self._wait()

    def _wait(self) -> None:
        """Begin a turn, at once if anybody waits."""
        if self._next < len(self.arrivals):
            self._simulation.at(float(self.arrivals[self._next]), self._turn)

    def _turn(self) -> None:
        first = self._next
        arrived = int(np.searchsorted(self.arrivals, self._simulation.now, "right"))
        last = min(arrived, first + self._costs.batch_rows)
        self._next = last
        self.core.use(self._costs.front(*self._rows(first, last)), lambda: self._ready(last))

    def _ready(self, last: int) -> None:
        self._scored = last
        self._send()
        self._wait()

    def _send(self) -> None:
        if self._sending or self._sent == self._scored:
            return
        first, last = self._sent, min(self._scored, self._sent + self._costs.batch_rows)
        self._sending, self._sent = True, last
        rows, costs = self._rows(first, last), self._costs
        size = rows.decisions * costs.decision_bytes + rows.payoffs * costs.payoff_bytes
        self._primary.execute(sum(rows) * costs.database_row, size, lambda: self._done(first, last))

    def _done(self, first: int, last: int) -> None:
        now = self._simulation.now
        self.answered[first:last] = now
        self._committed(self._rows(first, last), now)
        self._sending = False
        self._send()

    def _rows(self, first: int, last: int) -> Rows:
        payoffs = int(self._payoffs[last] - self._payoffs[first])
        return Rows(last - first - payoffs, payoffs)


class Learner:
    """Takes what was committed, in order, and publishes what it learned."""

    def __init__(self, simulation: Simulation, costs: Costs, primary: Primary, core: Cores) -> None:
        self._simulation, self._costs, self._primary = simulation, costs, primary
        self.core = core
        self._inbox: list[tuple[Rows, float]] = []
        self._unpublished: list[tuple[int, float]] = []  # payoffs, and when they were answered
        self._published = -1.0
        self._publishing = False
        self.learned = self.waiting = self.most_waiting = 0  # rows; waiting: not taken yet
        self.effects: list[tuple[float, int]] = []  # seconds to effect, and of how many payoffs
        simulation.after(costs.look, self._look)

    def arrive(self, rows: Rows, answered: float) -> None:
        """Rows were committed."""
        self._inbox.append((rows, answered))
        self.waiting += sum(rows)
        self.most_waiting = max(self.most_waiting, self.waiting)

    def _look(self) -> None:
        taken, total = 0, 0
        while taken < len(self._inbox) and total < self._costs.most:
            total += sum(self._inbox[taken][0])
            taken += 1
        if not taken:
            self._simulation.after(self._costs.look, self._look)
            return
        batches, self._inbox = self._inbox[:taken], self._inbox[taken:]
        self.waiting -= total
        decisions = sum(rows.decisions for rows, _ in batches)
        payoffs = sum(rows.payoffs for rows, _ in batches)
        costs = self._costs
        work, part = costs.folding(decisions, payoffs), costs.fold_in_database
        size = decisions * costs.folded_decision_bytes + payoffs * costs.folded_payoff_bytes

        def journalled() -> None:
            self.learned += total
            self._unpublished += [(rows.payoffs, at) for rows, at in batches if rows.payoffs]
            self._publish()
            self._look()

        self.core.use(
            work * (1 - part), lambda: self._primary.execute(work * part, size, journalled)
        )

    def _publish(self) -> None:
        if self._publishing or not self._unpublished:
            return
        wait = self._published + self._costs.publish - self._simulation.now
        self._publishing = True
        self._simulation.after(max(0.0, wait), self._write_model)

    def _write_model(self) -> None:
        self._published = self._simulation.now
        taken, self._unpublished = self._unpublished, []

        def seen() -> None:
            now = self._simulation.now
            self.effects += [(now - at, payoffs) for payoffs, at in taken]

        def written() -> None:
            self._simulation.after(self._costs.hop, seen)  # NOTIFY, and the model's row is read
            self._publishing = False
            self._publish()

        self.core.use(self._costs.model, lambda: self._primary.execute(0.0, 8_192.0, written))


class Shard:
    """Front ends over one primary, and its learner.

    Args:
        rate: decisions a second.
        payoffs: for each decision.
        shared: cores that front ends, database and learner share; None: a core for each front end
            and for the learner, and `database_cores` for the database.
    """

    def __init__(
        self,
        simulation: Simulation,
        costs: Costs,
        rate: float,
        payoffs: float,
        fronts: int,
        database_cores: int,
        seconds: float,
        seed: int,
        shared: int | None = None,
    ) -> None:
        random = np.random.default_rng(seed)
        same = None if shared is None else Cores(simulation, shared)

        def cores(count: int) -> Cores:
            return Cores(simulation, count) if same is None else same

        self.primary = Primary(simulation, costs, cores(database_cores))
        self.learner = Learner(simulation, costs, self.primary, cores(1))
        self.fronts = []
        requests = rate * (1 + payoffs)
        for _ in range(fronts):
            count = random.poisson(requests * seconds / fronts)
            arrivals = np.sort(random.uniform(0, seconds, count))
            paid = random.random(count) < payoffs / (1 + payoffs)
            core = cores(1)
            self.fronts.append(
                FrontEnd(
                    *(simulation, costs, self.primary, core, arrivals, paid), self.learner.arrive
                )
            )
