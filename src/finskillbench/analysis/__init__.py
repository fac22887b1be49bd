"""From rows to what a reader wants to know."""
