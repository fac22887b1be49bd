"""Tables of episodes: endings, resources and agent behaviour."""
