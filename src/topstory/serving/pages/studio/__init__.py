"""The studio: the pages for those who run the service."""
