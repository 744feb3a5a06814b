"""The documentation: its pages, and in `generate` what writes parts of them."""
