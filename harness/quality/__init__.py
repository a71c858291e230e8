"""Quality: how well a variant predicts a text, beside how fast it is."""
