"""What is checked of desk cases beside their labels."""
