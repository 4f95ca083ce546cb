"""How the offline scorers were trained: data, training, evaluation, and the model card."""
