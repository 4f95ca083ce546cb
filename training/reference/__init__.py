"""How the reference models learned their world."""
