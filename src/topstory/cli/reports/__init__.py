"""What a command answers: records for people and for --json."""
