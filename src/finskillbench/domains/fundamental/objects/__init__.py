"""Reports, candidate pools and difficulty of the fundamental subtasks."""
