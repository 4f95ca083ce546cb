"""What a model invents about people of whom it is told one thing."""
