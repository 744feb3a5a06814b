"""Who may do what, and what is signed."""
