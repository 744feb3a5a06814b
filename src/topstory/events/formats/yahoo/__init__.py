"""Yahoo's Webscope logs, R6A and R6B."""
