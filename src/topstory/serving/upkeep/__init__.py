"""What happens beside requests: snapshots, exports, backups."""
