/* What is wider than the window, a table or a figure, is scrolled by the keyboard too. */
addEventListener("load", () => {
  const wide = document.querySelectorAll('.md-typeset__scrollwrap, .md-typeset p:has(> img[src$=".svg"])');
  for (const each of wide) each.tabIndex = 0;
});
