"""Commands that make, convert and look at logs."""
