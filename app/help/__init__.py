"""Words and papers: the glossary and the references."""
