"""Guidelines of a committee case: `amending.draw_guidelines` writes one document with its coded rules.

    vocabulary = Vocabulary(issuers={"ACME": "Acme Systems", ...})
    guidelines = draw_guidelines(rng, vocabulary, as_of, book, breaches=4)
    guidelines.text, guidelines.rules(), guidelines.rules(frozenset({ReadingTrap.DEFINITION}))

With a book, limits are usual numbers that it keeps, except for the requested breaches. Its instruments must use the
names in `vocabulary`; banks issue cash; futures have a notional and no market value. `reader` recovers the rules from
the text with independent code.
"""
