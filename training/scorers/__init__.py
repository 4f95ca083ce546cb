"""The offline scorers: data, training, evaluation, and the model cards."""
