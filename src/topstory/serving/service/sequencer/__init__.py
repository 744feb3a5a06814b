"""The sequencer: numbers, commits and applies what front ends propose."""
