"""What a run of the same thing as baseline and candidate tells of a machine's noise."""
