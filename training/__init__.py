"""How the offline scorers and the reference models were trained; not part of the package."""
