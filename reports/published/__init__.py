"""What documents say: their figures and opinions, to stand beside what was measured."""
