"""What the demo shows: stories, their pictures, and the people who read them. All made up."""
