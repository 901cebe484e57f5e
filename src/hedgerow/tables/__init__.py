"""What a table is: files, the layout they follow, and the index over them."""
