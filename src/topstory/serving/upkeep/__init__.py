"""Background work and maintenance: snapshots, archiving, exports, backups."""
