"""vLLM in this process: `vllm:ID` is the model `hf:ID`, read by another engine."""
