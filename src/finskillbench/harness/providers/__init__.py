"""Language models behind a provider's API, what they cost and how they fail."""
