"""Data for benchmarks of others, in their forms. Truth is a brute force in float64.

  data.py vectors FOLDER ROWS DIMENSIONS QUERIES   of FOLDER/embeddings.f32, which embedding_file wrote:
      FOLDER/cosine, FOLDER/l2   train.parquet, test.parquet and neighbors.parquet, as VectorDBBench takes a data set of one's own
      FOLDER/angular.hdf5        as ann-benchmarks takes one
  data.py documents FOLDER ROWS QUERIES            documents.tsv and queries.tsv for COPY, and truth.npy"""

import os
import sys

import numpy

NEAREST = 100
BLOCK = 50      # queries that are multiplied with all rows at once
ELEMENTS = 120  # of a document that are not zero
WORDS = 30000   # dimensions of a document


def nearest(base, queries, metric):
    """Row numbers of the nearest rows of each query, nearest first, and their distances: cosine or L2."""
    exact = base.astype(numpy.float64)
    asked = queries.astype(numpy.float64)
    if metric == "cosine":
        exact /= numpy.linalg.norm(exact, axis=1, keepdims=True)
        asked /= numpy.linalg.norm(asked, axis=1, keepdims=True)
    squares = (exact * exact).sum(axis=1)
    ids, distances = [], []
    for i, query in enumerate(asked):
        if i % BLOCK == 0:
            products = asked[i:i + BLOCK] @ exact.T
        product = products[i % BLOCK]
        values = 1 - product if metric == "cosine" else numpy.sqrt(numpy.maximum(squares - 2 * product + query @ query, 0))
        first = numpy.argpartition(values, NEAREST - 1)[:NEAREST]
        first = first[numpy.lexsort((first, values[first]))]
        ids.append(first)
        distances.append(values[first])
    return numpy.array(ids, dtype=numpy.int64), numpy.array(distances)


def write_parquet(folder, base, queries, ids):
    import pyarrow
    import pyarrow.parquet

    def vectors(rows):
        return pyarrow.ListArray.from_arrays(numpy.arange(0, rows.size + 1, rows.shape[1], dtype=numpy.int32), rows.ravel())

    os.makedirs(folder, exist_ok=True)
    for name, column, values in [("train", "emb", base), ("test", "emb", queries), ("neighbors", "neighbors_id", ids)]:
        table = pyarrow.table({"id": numpy.arange(len(values)), column: vectors(values)})
        pyarrow.parquet.write_table(table, os.path.join(folder, name + ".parquet"))


def write_hdf5(path, base, queries, ids, distances):
    import h5py

    with h5py.File(path, "w") as file:
        file.attrs.update({"type": "dense", "distance": "angular", "dimension": base.shape[1], "point_type": "float"})
        for name, values in [("train", base), ("test", queries), ("neighbors", ids), ("distances", distances)]:
            file.create_dataset(name, data=values)


def write_vectors(folder, rows, dimensions, queries):
    everything = numpy.fromfile(os.path.join(folder, "embeddings.f32"), dtype=numpy.float32).reshape(-1, dimensions)
    if len(everything) != rows + queries:
        sys.exit(f"embeddings.f32 has {len(everything)} rows instead of {rows + queries}")
    base, asked = everything[:rows], everything[rows:]
    for metric in "cosine", "l2":
        ids, distances = nearest(base, asked, metric)
        write_parquet(os.path.join(folder, metric), base, asked, ids)
        if metric == "cosine":
            write_hdf5(os.path.join(folder, "angular.hdf5"), base, asked, ids, distances)


def draw_documents(count, random):
    """Sparse rows: different words by Zipf's law with exponent 1, and weights evenly from 0 to 1."""
    import scipy.sparse

    sums = numpy.cumsum(1 / numpy.arange(1, WORDS + 1))
    words = numpy.empty((count, ELEMENTS), dtype=numpy.int32)
    for i in range(count):
        # A word that was drawn before is drawn anew: the first ELEMENTS different ones count.
        drawn, first = numpy.unique(numpy.searchsorted(sums, random.random(8 * ELEMENTS) * sums[-1]), return_index=True)
        words[i] = numpy.sort(drawn[numpy.argsort(first)[:ELEMENTS]])
    weights = (1 - random.random(words.shape)).astype(numpy.float32)
    starts = numpy.arange(0, words.size + 1, ELEMENTS)
    return scipy.sparse.csr_matrix((weights.ravel(), words.ravel(), starts), shape=(count, WORDS))


def write_copy(path, rows):
    with open(path, "w", encoding="ascii") as file:
        for i in range(rows.shape[0]):
            part = slice(rows.indptr[i], rows.indptr[i + 1])
            elements = ",".join(f"{word + 1}:{weight!s}" for word, weight in zip(rows.indices[part], rows.data[part]))
            file.write(f"{i}\t{{{elements}}}/{WORDS}\n")


def write_documents(folder, rows, queries):
    random = numpy.random.default_rng(20260101)
    base, asked = draw_documents(rows, random), draw_documents(queries, random)
    write_copy(os.path.join(folder, "documents.tsv"), base)
    write_copy(os.path.join(folder, "queries.tsv"), asked)
    exact, ids = base.astype(numpy.float64), []
    for i in range(queries):
        product = -(exact @ asked[i].T.astype(numpy.float64)).toarray().ravel()
        first = numpy.argpartition(product, NEAREST - 1)[:NEAREST]
        ids.append(first[numpy.lexsort((first, product[first]))])
    numpy.save(os.path.join(folder, "truth.npy"), numpy.array(ids))


if __name__ == "__main__":
    kind, folder, *counts = sys.argv[1:]
    {"vectors": write_vectors, "documents": write_documents}[kind](folder, *map(int, counts))
