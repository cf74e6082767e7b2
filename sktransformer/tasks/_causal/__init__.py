"""What `CausalLMGenerator` reads, is trained on and writes."""
