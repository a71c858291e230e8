"""The host side: a scenario goes in, results come out."""
