"""What makes the site of the documentation: pages from code and from files of the repository, executed tutorials."""
