"""Stories: what a model invents about a person of whom it is told one thing."""
