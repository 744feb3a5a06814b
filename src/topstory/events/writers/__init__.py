"""Writers of logs for other tools, by the name of the format."""
