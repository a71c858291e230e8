"""What a run leaves behind: its model, its writer and its reader."""
