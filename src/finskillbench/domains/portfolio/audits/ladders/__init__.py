"""Answers to portfolio tasks from right to wrong, as a portfolio manager ranks them."""
