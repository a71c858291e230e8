"""What runs inside each framework's own process; needs the standard library only."""
