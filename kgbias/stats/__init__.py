"""Figures with uncertainty: samples, how they were drawn, and what follows from them."""
