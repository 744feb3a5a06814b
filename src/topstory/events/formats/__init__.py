"""Log formats of other systems: import and export."""
