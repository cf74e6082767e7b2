"""What models ask of torch on a CPU, computed in faster ways with the same result."""
