"""Decide and learn over HTTP: buckets, pools, a journal, snapshots, keys, metrics."""
