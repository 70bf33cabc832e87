"""The nouns that every other room speaks. Imports pydantic and the standard library only."""
