"""The committee case: from guidelines and an extract of the custodian to the true book, its breaches and the cure."""
