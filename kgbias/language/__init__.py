"""What is known of words: their stems, echoes of an example, and how models refuse."""
