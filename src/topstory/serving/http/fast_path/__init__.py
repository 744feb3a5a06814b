"""The two busiest routes, from the HTTP parser straight to the service."""
