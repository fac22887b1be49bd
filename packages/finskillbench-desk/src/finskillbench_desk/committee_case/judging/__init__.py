"""How an answer is judged: part by part, each later part by what the agent's own earlier parts come to."""
