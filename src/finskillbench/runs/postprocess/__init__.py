"""What is done with a run once it has ended: judge again, merge, show, score answers from elsewhere."""
