"""The words of the field as values: frozen, standard library only, no input or output."""
