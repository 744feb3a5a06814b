"""The state from the disk: a data folder, its snapshots, and the records after them."""
