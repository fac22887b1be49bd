"""What a user brings to risk management: mandates, scenarios and books, in the formats of the built-in ones."""
