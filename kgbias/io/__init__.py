"""What goes in and out: files of somebody else's, files of ours, pages, escapes, progress."""
