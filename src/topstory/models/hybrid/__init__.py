"""The hybrid model, and z that changes with the event or by an edit."""
