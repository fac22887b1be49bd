"""What an agent may call: contracts as a model sees them, the toolbox that serves them, and its interpreters."""
