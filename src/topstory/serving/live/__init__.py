"""`topstory demo --live`: a service, and simulated visitors who come to it."""
