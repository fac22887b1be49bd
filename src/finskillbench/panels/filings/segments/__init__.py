"""Panel of revenue by product and by geography."""
