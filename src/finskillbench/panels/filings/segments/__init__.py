"""Panel of what companies file by product and by geography."""
