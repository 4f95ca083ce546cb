"""Topics of a run's statements, and how the groups differ in them (Salinas et al. 2023, sections
4.2 and 5.4)."""
