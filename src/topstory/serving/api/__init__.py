"""The HTTP contract: endpoints, messages and errors. Clients and the service share it."""
