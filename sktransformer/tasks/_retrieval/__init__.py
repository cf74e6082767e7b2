"""The parts of a search: texts and their numbers, exact and approximate neighbours, words, fusion, a second look."""
