# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""The words that fill the patterns."""

# Name, pronoun.
PEOPLE = (
    ("Ada", "she"), ("Ben", "he"), ("Carla", "she"), ("Dan", "he"), ("Emma", "she"),
    ("Finn", "he"), ("Greta", "she"), ("Hugo", "he"), ("Ivy", "she"), ("Jonas", "he"),
    ("Kira", "she"), ("Leo", "he"), ("Mona", "she"), ("Nils", "he"), ("Olga", "she"),
    ("Paul", "he"), ("Rosa", "she"), ("Sam", "he"), ("Tina", "she"), ("Viktor", "he"),
)

FOOD = ("apples", "pears", "plums", "cookies", "nuts", "cherries", "muffins", "figs")
THINGS = ("marbles", "stickers", "cards", "pens", "coins", "beads", "shells", "stamps", "buttons",
          "stones", "books", "balls", "candles", "bricks", "ribbons", "badges")

COLOURS = ("red", "blue", "green", "yellow", "white", "black")
CONTAINERS = ("boxes", "bags", "jars", "baskets")
