"""How the offline scorers and the reference models were trained; no part of the package."""
