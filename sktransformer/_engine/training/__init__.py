"""From encoded documents and targets to trained weights: batches, losses, schedules, one skorch net."""
