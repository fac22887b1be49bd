"""The guidelines of a committee case: `composing.draw_guidelines` writes one document with its coded rules.

    words = Vocabulary(issuers={"ACME": "Acme Systems", ...})
    guidelines = draw_guidelines(rng, words, as_of, book, breaches=4)
    guidelines.text, guidelines.rules(), guidelines.rules(frozenset({Trap.DEFINITION}))

With a book, limits are usual numbers that the book keeps, but for the breaches asked for. For that its instruments use
the words of `vocabulary`: sectors, sub-sectors, country codes, the lists "Restricted List", "Unlisted" and "Affiliated
Funds", banks as issuers of cash; futures have a notional and no market value. `reader` recovers the rules from the text
alone, by code and words of its own.
"""
