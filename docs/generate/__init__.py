"""What writes parts of the documentation: two reference pages, pictures and measured tables."""
