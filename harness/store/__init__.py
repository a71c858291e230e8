"""The model store: sources in, each framework's own artifact out, cached by content."""
