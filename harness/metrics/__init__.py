"""What each number means, and how it is computed from time stamps and samples."""
