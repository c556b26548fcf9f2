# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: SIM905 - a word list is easier to read than a list of strings
"""The words for the templates in texts.py."""

from __future__ import annotations

NAMES = (
    "Ada Alan Amir Anna Boris Carla Chen Dana Edgar Elif Emma Fatima Felix Greta Hana Hugo Ines Ivan Jonas Julia Kofi "
    "Lars Leila Lin Maria Max Mina Nadia Noor Olga Omar Paul Priya Rosa Ruth Samir Sven Tara Tomas Yuki"
).split()
JOBS = (
    "actor archer baker barber brewer builder carpenter chemist clerk cook dancer dentist doctor driver engineer "
    "farmer fisher gardener guide hunter judge lawyer mason mechanic miner nurse painter pilot plumber poet potter "
    "printer sailor singer soldier tailor teacher vet waiter weaver"
).split()
PLACES = (
    "airport bakery bank beach bridge cafe castle church cinema farm forest garden harbour hospital hotel island "
    "kitchen lake library market meadow mill mountain museum office palace park pharmacy port prison river school "
    "shop square stadium station street theatre tower village"
).split()
THINGS = {
    "apple": "apples", "basket": "baskets", "bell": "bells", "boat": "boats", "book": "books", "bottle": "bottles",
    "box": "boxes", "bread": "breads", "brush": "brushes", "button": "buttons", "candle": "candles", "chair": "chairs",
    "cherry": "cherries", "city": "cities", "clock": "clocks", "coat": "coats", "cup": "cups", "dish": "dishes",
    "door": "doors", "drum": "drums", "feather": "feathers", "flag": "flags", "flower": "flowers", "fork": "forks",
    "glass": "glasses", "hammer": "hammers", "hat": "hats", "key": "keys", "knife": "knives", "ladder": "ladders",
    "lamp": "lamps", "leaf": "leaves", "lemon": "lemons", "map": "maps", "mirror": "mirrors", "needle": "needles",
    "onion": "onions", "peach": "peaches", "pencil": "pencils", "pillow": "pillows", "plate": "plates",
    "purse": "purses", "ring": "rings", "rope": "ropes", "shelf": "shelves", "shoe": "shoes", "spoon": "spoons",
    "stamp": "stamps", "table": "tables", "ticket": "tickets", "towel": "towels", "violin": "violins",
    "wallet": "wallets", "watch": "watches", "wheel": "wheels", "window": "windows",
}  # fmt: skip
COLOURS = "black blue brown gold green grey orange pink purple red silver white yellow".split()
OPPOSITES = (
    ("hot", "cold"), ("big", "small"), ("old", "young"), ("fast", "slow"), ("early", "late"), ("open", "closed"),
    ("full", "empty"), ("hard", "soft"), ("high", "low"), ("light", "dark"), ("loud", "quiet"), ("long", "short"),
    ("rich", "poor"), ("strong", "weak"), ("thick", "thin"), ("wet", "dry"), ("wide", "narrow"), ("wild", "tame"),
    ("clean", "dirty"), ("cheap", "expensive"), ("sweet", "bitter"), ("happy", "sad"), ("brave", "timid"),
    ("smooth", "rough"), ("deep", "shallow"), ("right", "wrong"), ("safe", "dangerous"), ("sharp", "blunt"),
)  # fmt: skip
VERBS = (
    ("walks", "walked"), ("works", "worked"), ("waits", "waited"), ("sings", "sang"), ("sleeps", "slept"),
    ("reads", "read"), ("swims", "swam"), ("runs", "ran"), ("plays", "played"), ("laughs", "laughed"),
    ("dances", "danced"), ("writes", "wrote"), ("talks", "talked"), ("rests", "rested"), ("eats", "ate"),
    ("paints", "painted"), ("drives", "drove"), ("stands", "stood"), ("cooks", "cooked"), ("listens", "listened"),
)  # fmt: skip
CAPITALS = {
    "Austria": "Vienna", "Brazil": "Brasilia", "Canada": "Ottawa", "Chile": "Santiago", "China": "Beijing",
    "Cuba": "Havana", "Denmark": "Copenhagen", "Egypt": "Cairo", "Finland": "Helsinki", "France": "Paris",
    "Germany": "Berlin", "Ghana": "Accra", "Greece": "Athens", "Hungary": "Budapest", "Iceland": "Reykjavik",
    "India": "New Delhi", "Iran": "Tehran", "Ireland": "Dublin", "Italy": "Rome", "Japan": "Tokyo", "Kenya": "Nairobi",
    "Mexico": "Mexico City", "Nepal": "Kathmandu", "Norway": "Oslo", "Peru": "Lima", "Poland": "Warsaw",
    "Portugal": "Lisbon", "Romania": "Bucharest", "Senegal": "Dakar", "Spain": "Madrid", "Sweden": "Stockholm",
    "Thailand": "Bangkok", "Tunisia": "Tunis", "Turkey": "Ankara", "Vietnam": "Hanoi",
}  # fmt: skip
