"""The numbers of the three traffic buckets, wherever kernels or arrays are indexed by one.

The service's journal stores these numbers: they never change.
"""

LEARNING, DEPLOYMENT, UNIFORM = 0, 1, 2
