"""What a fixed policy would earn, from a log that another policy wrote."""
