"""Comparing: groups within a run, augmentation arms, and runs with each other."""
