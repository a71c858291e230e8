"""Results go in; tables, plots, Markdown and HTML come out."""
