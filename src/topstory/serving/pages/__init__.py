"""The pages in a browser: the front page for visitors, and the studio for those who run it."""
