"""The learner of a fleet: who it is, what it takes from front ends, what it publishes."""
