"""Figures of results as SVG, drawn by us, and as PNG.

Why not Altair, which a figure of a notebook would take: the same figure has to stand in a page in light and in dark, be
described to a screen reader and be read without a script, and there are about twenty of them for 17,820 rows in a few
seconds. A drawing whose parts have classes and no colours of their own does all of it: the page and the files colour it
by the two columns of `style.COLOURS`. vl-convert, which would draw Altair's, brings a JavaScript engine of 33 MB and a
picture whose colours are fixed; resvg makes the PNG files from ours with 1.4 MB.

Every figure is drawn from a `Table`, which stands below it in the page: nothing can be seen that cannot be read.
"""
