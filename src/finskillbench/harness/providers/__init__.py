"""Language models behind providers' APIs: calls, prices and failures."""
