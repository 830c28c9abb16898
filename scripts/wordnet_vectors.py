#!/usr/bin/env python3
"""Turn the glosses of WordNet into dense vectors: tf-idf of words, half of the dimensions by a truncated SVD (topics), half by
a random projection (the words themselves).

Writes two files for COPY ... (FORMAT binary): the synsets (id int, words text, gloss text, v vector), and queries
(id int, text text, v vector): first the texts asked for, as 1, 2, ..., then glosses held out of the synsets, from 1001.
The same input gives the same vectors."""

import argparse
import re
import struct
import sys
import time
from collections import Counter
from functools import lru_cache

import numpy as np

KINDS = ("noun", "verb", "adj", "adv")
STOP_WORDS = set(
    """a about after all also an and any are as at be because been being between both but by can d did do does e especially
    etc for from g had has have having he her him his i if in into is it its itself ll may more most much no nor not of often
    on one only or other others out over own re s she so some someone something such t than that the their them then there
    these they this those to too under up used usually ve very was were what when where which while who whose will with
    within without would you your""".split()
)
started = time.time()


def say(text):
    print(f"{text} ({time.time() - started:.1f} s)", flush=True)


@lru_cache(maxsize=None)
def stem(word):
    """Cut the commonest endings, so that 'dogs' meets 'dog'."""
    for ending in ("ication", "ating", "ated", "ation", "ate", "ies", "ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4 - (ending == "s"):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


def terms(text):
    return [stem(word) for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 1 and word not in STOP_WORDS]


def read_synsets(folder):
    """Read (words, gloss, keys of the synsets above) in the order of the files."""
    synsets, places = [], {}
    for kind in KINDS:
        with open(f"{folder}/data.{kind}", encoding="latin-1") as lines:
            for line in lines:
                if line.startswith("  "):
                    continue
                head, _, gloss = line.partition(" | ")
                fields = head.split(" ")
                count = int(fields[3], 16)
                words = [re.sub(r"\(.*\)$", "", word).replace("_", " ") for word in fields[4 : 4 + 2 * count : 2]]
                pointers = fields[5 + 2 * count :]
                above = [
                    (pointers[i + 2], pointers[i + 1])
                    for i in range(0, len(pointers) - 3, 4)
                    if pointers[i] in ("@", "@i")
                ]
                places[(fields[2].replace("s", "a"), fields[0])] = len(synsets)
                synsets.append((words, gloss.strip(), above))
    return synsets, places


def features(synsets, places):
    """Weigh words: those of the gloss and of the synset itself 1, those of the synsets above it less with each step up."""
    names = [terms(" ".join(words)) for words, _, _ in synsets]
    parents = [[places[key] for key in above if key in places] for _, _, above in synsets]
    documents = []
    for i, (_, gloss, _) in enumerate(synsets):
        weights = Counter(terms(gloss))
        weights.update(names[i])
        weight, level = 1.0, parents[i]
        for _ in range(3):
            weight /= 2
            for parent in level:
                for term in names[parent]:
                    weights[term] = weights.get(term, 0) + weight
            level = [above for parent in level for above in parents[parent]]
        documents.append(weights)
    return documents


class Sparse:
    """A sparse matrix by rows, just enough to multiply dense ones."""

    def __init__(self, row, column, value, shape):
        order = np.lexsort((column, row))
        self.row, self.column, self.value, self.shape = row[order], column[order], value[order], shape

    def every(self, step):
        """One row of each STEP, from the first on."""
        chosen = self.row % step == 0
        row = self.row[chosen] // step
        return Sparse(row, self.column[chosen], self.value[chosen], (-(-self.shape[0] // step), self.shape[1]))

    def transposed(self):
        return Sparse(self.column, self.row, self.value, self.shape[::-1])

    def times(self, dense):
        out = np.zeros((self.shape[0], dense.shape[1]), dtype=np.float32)
        step = 1 << 13  # products that stay in a processor's cache
        for begin in range(0, len(self.row), step):
            part = slice(begin, begin + step)
            products = dense[self.column[part]] * self.value[part, None]
            rows, starts = np.unique(self.row[part], return_index=True)
            out[rows] += np.add.reduceat(products, starts, axis=0)
        return out


def weigh(documents, vocabulary, idf):
    """The tf-idf matrix of documents, rows of length 1."""
    known = [[(vocabulary[term], weight) for term, weight in weights.items() if term in vocabulary] for weights in documents]
    row = np.repeat(np.arange(len(documents)), [len(pairs) for pairs in known])
    pairs = np.array([pair for pairs in known for pair in pairs], dtype=np.float64).reshape(-1, 2)
    column = pairs[:, 0].astype(np.int64)
    value = idf[column] * np.log1p(pairs[:, 1])
    norm = np.sqrt(np.bincount(row, value**2, len(documents)))
    return Sparse(row, column, (value / norm[row]).astype(np.float32), (len(documents), len(vocabulary)))


def principal_axes(matrix, dimensions, rounds):
    """The leading right singular vectors, by subspace iteration from a fixed start."""
    transposed = matrix.transposed()
    axes = np.random.default_rng(20260101).standard_normal((matrix.shape[1], dimensions)).astype(np.float32)
    for i in range(rounds):
        axes = np.linalg.qr(transposed.times(matrix.times(axes)))[0].astype(np.float32)
        say(f"  singular value decomposition: round {i + 1} of {rounds}")
    return axes


def normalised(vectors):
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)


def make_projection(matrix, dimensions, rounds, training):
    """Maps words to dimensions: half principal axes, those of a part of the rows, and half random directions."""
    axes = principal_axes(matrix.every(training), dimensions // 2, rounds)
    random = np.random.default_rng(7).standard_normal((matrix.shape[1], dimensions - dimensions // 2)).astype(np.float32)
    return axes, random


def project(matrix, projection):
    """Vectors of length 1, and which of them say anything."""
    parts = [normalised(matrix.times(part)) for part in projection]
    vectors = normalised(np.hstack(parts))
    return vectors.astype(">f4"), np.linalg.norm(vectors, axis=1) > 0


def vector_field(vector):
    return struct.pack(">ihh", 4 + 4 * len(vector), len(vector), 0) + vector.tobytes()


def text_field(text):
    data = text.encode()
    return struct.pack(">i", len(data)) + data


def write_copy(path, rows):
    """Write rows of (id, texts..., vector) in PostgreSQL's binary format."""
    with open(path, "wb") as out:
        out.write(b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0))
        for row in rows:
            out.write(struct.pack(">hii", len(row), 4, row[0]))
            out.write(b"".join(text_field(text) for text in row[1:-1]) + vector_field(row[-1]))
        out.write(struct.pack(">h", -1))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--wordnet", default="/usr/share/wordnet", help="folder of WordNet's data files")
    parser.add_argument("--dimensions", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the subspace iteration")
    parser.add_argument("--training", type=int, default=4, help="the axes come from every N-th synset")
    parser.add_argument("--held-out", type=int, default=1000, help="glosses that become queries instead of rows")
    parser.add_argument("--synsets", required=True, help="file to write the synsets to")
    parser.add_argument("--queries", required=True, help="file to write the queries to")
    parser.add_argument("--ask", action="append", default=[], metavar="TEXT", help="a query of your own; repeatable")
    return parser.parse_args()


def main():
    options = parse_arguments()
    synsets, places = read_synsets(options.wordnet)
    say(f"  {len(synsets)} synsets read")
    documents = features(synsets, places)
    frequency = Counter(term for weights in documents for term in weights)
    vocabulary = {term: i for i, term in enumerate(sorted(t for t, n in frequency.items() if n >= 2))}
    idf = np.log(len(documents) / np.array([frequency[term] for term in vocabulary], dtype=np.float64))
    matrix = weigh(documents, vocabulary, idf)
    say(f"  {len(vocabulary)} different words weighed")
    projection = make_projection(matrix, options.dimensions, options.rounds, options.training)
    vectors, usable = project(matrix, projection)
    held_out = set(np.random.default_rng(1).choice(np.flatnonzero(usable), options.held_out, replace=False).tolist())
    asked = weigh([Counter(terms(text)) for text in options.ask], vocabulary, idf)
    asked = project(asked, projection)[0] if options.ask else []
    write_copy(
        options.synsets,
        (
            (i + 1, ", ".join(words), gloss, vectors[i])
            for i, (words, gloss, _) in enumerate(synsets)
            if usable[i] and i not in held_out
        ),
    )
    queries = [(i + 1, text, asked[i]) for i, text in enumerate(options.ask)]
    queries += [(1001 + n, synsets[i][1], vectors[i]) for n, i in enumerate(sorted(held_out))]
    write_copy(options.queries, queries)
    say(f"  {int(usable.sum()) - len(held_out)} synsets and {len(queries)} queries of {options.dimensions} dimensions written")


if __name__ == "__main__":
    sys.exit(main())
