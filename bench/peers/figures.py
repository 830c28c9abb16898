"""Rows of results of bench/peers/run, and its table.

  figures.py vectordbbench OUT FOLDER SYSTEM INDEX ROWS DIMENSIONS   append the figures of the result files in the folder
  figures.py row OUT NAME=VALUE...                                   append a row
  figures.py table OUT                                               print figures at equal recall"""

import csv
import glob
import json
import os
import statistics
import sys

COLUMNS = ["tool", "rows", "dimensions", "metric", "k", "index", "options", "system", "kind", "settings", "clients", "recall",
           "queries_per_second", "build_seconds", "load"]


def append(path, rows):
    new = not os.path.exists(path)
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows({"load": f"{os.getloadavg()[0]:.1f}", **row} for row in rows)


def add_vectordbbench(path, folder, system, index, rows, dimensions):
    for name in sorted(glob.glob(os.path.join(folder, "**", "*.json"), recursive=True)):
        with open(name, encoding="utf-8") as file:
            results = json.load(file)["results"]
        for result in results:
            figures, task = result["metrics"], result["task_config"]
            options = task["db_case_config"]
            if not figures["conc_qps_list"]:
                sys.exit("VectorDBBench measured nothing: see its log in the work folder")
            if index == "hnsw":
                built, settings = f"m = {options['m']} ef_construction = {options['ef_construction']}", f"ef_search={options['ef_search']}"
            else:
                built, settings = f"lists = {options['lists']}", f"probes={options['probes']}"
            common = {"tool": "VectorDBBench", "rows": rows, "dimensions": dimensions, "metric": options["metric_type"].lower(),
                      "k": task["case_config"]["k"], "index": index, "options": built, "system": system}
            if figures["optimize_duration"] > 0:
                append(path, [{**common, "kind": "build", "build_seconds": f"{figures['optimize_duration']:.2f}"}])
            append(path, [{**common, "kind": "search", "settings": settings, "clients": clients, "recall": f"{figures['recall']:.4f}",
                           "queries_per_second": f"{rate:.1f}"}
                          for clients, rate in zip(figures["conc_num_list"], figures["conc_qps_list"])])


def case_of(row):
    return tuple(row[name] for name in ("tool", "rows", "dimensions", "metric", "k", "index", "options"))


def least_effort(points, recall):
    """The fastest of one system's points that find at least as much."""
    enough = [point for point in points if float(point["recall"]) >= recall]
    return max(enough, key=lambda point: float(point["queries_per_second"]), default=None)


def medians(rows, names, value):
    """One row for each value of the names, with the median of a column."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return [{**group[0], value: statistics.median(float(row[value]) for row in group)} for group in groups.values()]


def lines_of(case, rows):
    builds = {row["system"]: row["build_seconds"] for row in medians([row for row in rows if row["kind"] == "build"], ["system"], "build_seconds")}
    if {"pgvector", "pgwarp"} <= builds.keys():
        yield [*case, "CREATE INDEX", "", "", f"{builds['pgvector']:.1f} s", "", "", f"{builds['pgwarp']:.1f} s",
               f"{builds['pgvector'] / builds['pgwarp']:.1f}"]
    searches = medians([row for row in rows if row["kind"] == "search"], ["system", "settings", "clients"], "queries_per_second")
    for row in sorted(searches, key=lambda row: (int(row["clients"]), float(row["recall"]))):
        if row["system"] != "pgvector":
            continue
        own = least_effort([other for other in searches if other["system"] == "pgwarp" and other["clients"] == row["clients"]], float(row["recall"]))
        rate = row["queries_per_second"]
        line = [*case, f"{row['clients']} clients", row["settings"], row["recall"], f"{rate:.0f}/s"]
        yield line + (["", "", "", ""] if own is None else
                      [own["settings"], own["recall"], f"{own['queries_per_second']:.0f}/s", f"{own['queries_per_second'] / rate:.1f}"])


def print_table(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    head = ["tool", "rows", "dimensions", "metric", "k", "index", "options", "work", "pgvector", "recall", "", "pgwarp", "recall", "", "ratio"]
    lines = [head]
    for case in dict.fromkeys(map(case_of, rows)):
        lines += lines_of(case, [row for row in rows if case_of(row) == case])
    widths = [max(len(str(line[i])) for line in lines) for i in range(len(head))]
    for line in lines:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(line, widths)).rstrip())


if __name__ == "__main__":
    command, path, *arguments = sys.argv[1:]
    if command == "vectordbbench":
        add_vectordbbench(path, *arguments)
    elif command == "row":
        append(path, [dict(argument.split("=", 1) for argument in arguments)])
    else:
        print_table(path)
