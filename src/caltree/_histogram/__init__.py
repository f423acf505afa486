"""Trees on more rows than one would sort: attributes in bins, rows in chunks, and sums over them.

A tree is grown level by level. Each question about the rows (what do they say about a node model,
about a split, about an average?) is put to every chunk, and the answers, which are whole numbers,
are added up. So it does not matter where the chunks are, nor how the rows are divided among them.
"""
