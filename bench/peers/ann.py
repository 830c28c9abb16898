"""Run the module pgvector of ann-benchmarks in this process: ann.py SOURCE DATASET OUT SYSTEM [M]. The current folder has
data/DATASET.hdf5. Its run.py takes only data sets that it can download; the definitions and the runner are its own."""

import contextlib
import io
import os
import re
import sys

source, dataset, out, system, *rest = sys.argv[1:]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import figures
import h5py
from ann_benchmarks.definitions import get_definitions
from ann_benchmarks.plotting.utils import compute_metrics_all_runs
from ann_benchmarks.results import load_all_results
from ann_benchmarks.runner import run

COUNT = 10  # the default of run.py
RUNS = 3


class Tee(io.StringIO):
    """What the module prints is shown and kept: it prints the time of CREATE INDEX."""

    def write(self, text):
        sys.__stdout__.write(text)
        return super().write(text)


def run_definition(definition):
    printed = Tee()
    with contextlib.redirect_stdout(printed):
        run(definition, dataset, COUNT, RUNS, False)
    return float(re.search(r"total indexing time: ([0-9.]+)", printed.getvalue())[1])


def main():
    file = h5py.File(os.path.join("data", dataset + ".hdf5"), "r")
    rows, dimensions = file["train"].shape
    degree = int(rest[0]) if rest else 16
    definitions = get_definitions(dimension=dimensions, point_type="float", distance_metric="angular", count=COUNT,
                                  base_dir=os.path.join(source, "ann_benchmarks", "algorithms"))
    [definition] = [d for d in definitions if d.algorithm == "pgvector" and d.arguments[1]["M"] == degree]
    options = " ".join(f"{name} = {value}" for name, value in definition.arguments[1].items())
    common = {"tool": "ann-benchmarks", "rows": rows, "dimensions": dimensions, "metric": "cosine", "k": COUNT, "index": "hnsw",
              "options": options, "system": system}
    figures.append(out, [{**common, "kind": "build", "build_seconds": f"{run_definition(definition):.2f}"}])
    points = compute_metrics_all_runs(file, load_all_results(dataset, COUNT))
    figures.append(out, [{**common, "kind": "search", "settings": re.search(r"ef_search=\d+", point["parameters"])[0], "clients": 1,
                          "recall": f"{point['k-nn']:.4f}", "queries_per_second": f"{point['qps']:.1f}"} for point in points])


main()
