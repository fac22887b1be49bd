"""What a user brings to portfolio construction: constraint tiers, and the words of tool-use mandates."""
