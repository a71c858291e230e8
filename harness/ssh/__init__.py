"""Boards that are reached by the user's own OpenSSH."""
