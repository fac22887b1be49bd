"""What an answer is worth, what one without skill earns, and when two answers are one."""
