"""What is checked of portfolio construction beside its labels: panels, and the tasks as a whole."""
