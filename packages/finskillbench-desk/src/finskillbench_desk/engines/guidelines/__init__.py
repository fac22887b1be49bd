"""Investment guidelines as coded rules: the language, the book that rules are run on, and their evaluation."""
