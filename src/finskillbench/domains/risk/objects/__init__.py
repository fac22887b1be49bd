"""What the risk subtasks share: portfolios, mandates fitted to dates, scenarios, and pairs of them."""
