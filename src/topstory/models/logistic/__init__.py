"""Models of clicks on the scale of log-odds."""
