"""What goes out into the world: submissions, and the leaderboards that take them."""
