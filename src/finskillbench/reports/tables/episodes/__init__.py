"""Episodes: how they ended, what they took, how agents went about them."""
