"""Input and output: other people's files, our own files, pages, escapes, progress."""
