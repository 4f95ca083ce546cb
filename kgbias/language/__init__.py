"""Words: their stems, echoes of an example, and how models refuse."""
