"""Two results side by side: what differs, and how certain that is."""
