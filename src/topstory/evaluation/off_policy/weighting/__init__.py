"""How much each event of a log counts for a policy, and what payoff to expect of it."""
