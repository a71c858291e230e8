"""What to run: the scenario's model and its loader."""
