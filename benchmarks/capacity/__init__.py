"""How much a fleet can serve: the arithmetic, and a simulation of fleets that nobody ran."""
