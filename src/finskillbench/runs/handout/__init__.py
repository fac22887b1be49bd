"""Episodes handed out as folders, for agents that read and write files, and the answers that come back in them."""
