"""How each kind of explorer chooses, inside the kernels."""
