"""Draw curves of recall against queries a second of bench/curves or bench/gpu/graph_session, as NAME-*.svg beside each
other in a folder, NAME being that of the CSV: plot_curves.py NAME.csv FOLDER.

  NAME-DATA.svg          recall@k against queries/s of each index, a panel for each k
  NAME-DATA-choices.svg  the same of SONG's choices for a search (figures 7 and 8 of the paper)
  NAME-DATA-batches.svg  queries/s by the size of a batch (figure 9)
  NAME-rows.svg          seconds of a build and queries/s by the number of rows

Prints the tables of docs/graph.md: the fastest settings at k = 10, and what calibrated searches found.
"""

import csv
import os
import re
import statistics
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "pgwarp"  # the same file for the same points
import matplotlib.pyplot as plt

VISITED = {"0": "hash", "1": "bloom", "2": "cuckoo"}
GROWTH_RECALL = 0.95
MOST_RECALL = 0.9995  # more is drawn there: the axis has no end
RECALLS = [0.5, 0.8, 0.9, 0.95, 0.99, 0.999]


def ef_of(row):
    """The ef_search of a graph's row, else none."""
    found = re.search(r"\bef(?:_search)?=(\d+)", row["settings"])
    return int(found.group(1)) if found else None


def degree_of(row):
    """The degree of a graph's row, else none."""
    found = re.search(r"\bdegree=(\d+)", row["settings"])
    return int(found.group(1)) if found else None


def of_usual_degree(rows):
    """Without graphs of another degree than most of them have, or the least of two that are as frequent."""
    degrees = sorted({degree_of(row) for row in rows} - {None})
    counts = [sum(degree_of(row) == degree for row in rows) for degree in degrees]
    usual = degrees[counts.index(max(counts))] if degrees else None
    return [row for row in rows if degree_of(row) in (usual, None)]


def family_of(row):
    """What sets have in common that differ in their number of rows."""
    return re.sub(r"-\d+[km]?$", "", row["data"])


def choice_of(row):
    """What a search was asked to do differently, in words; nothing for the usual one."""
    parts = [part for part in row["settings"].split() if not re.match(r"(ef|ef_search|degree|lists|probes|refine_factor|default)(=|$)", part)]
    return " ".join("visited=" + VISITED.get(part[8:], part[8:]) if part.startswith("visited=") else part for part in parts)


def number(row, column):
    return float(row[column])


def tidy(axes, title, x, y, log_x=False):
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_yscale("log")
    if log_x:
        axes.set_xscale("log")
    axes.grid(True, which="major", linewidth=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


def save(figure, folder, name, title):
    figure.suptitle(title, fontsize=11 if figure.get_figwidth() > 6 else 9)
    figure.tight_layout()
    path = os.path.join(folder, name + ".svg")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    print(path)


def series(axes, rows, name_of, colours, least_recall):
    """A line for each name, through its points in order of recall. What is of no interest any more is left out."""
    for name, colour in colours.items():
        points = sorted((min(number(row, "recall"), MOST_RECALL), number(row, "queries_per_second")) for row in rows if name_of(row) == name)
        points = [point for point in points if point[0] >= least_recall]
        # What another point has with more of both is no choice.
        points = [point for point in points if not any(other != point and other[0] >= point[0] and other[1] >= point[1] for other in points)]
        if points:
            axes.plot([p[0] for p in points], [p[1] for p in points], marker="o", markersize=3, linewidth=1, label=name, color=colour)


def title_of(rows):
    return f"{rows[0]['data']}: {int(rows[0]['rows']):,} x {rows[0]['dimensions']}"


def draw_recall(rows, folder, name, name_of, title):
    """From a recall of a half on, or from where all curves begin."""
    ks = sorted({int(row["k"]) for row in rows})
    figure, axes = plt.subplots(1, len(ks), figsize=(4.2 * len(ks), 4), squeeze=False)
    least = max([recall for recall in RECALLS if recall <= min(number(row, "recall") for row in rows)], default=RECALLS[0])
    names = list(dict.fromkeys(name_of(row) for row in rows))
    colours = dict(zip(names, plt.get_cmap("tab10" if len(names) <= 10 else "tab20").colors))
    for place, k in zip(axes[0], ks):
        series(place, [row for row in rows if int(row["k"]) == k], name_of, colours, least)
        tidy(place, f"k = {k}", f"recall@{k}", "queries/s")
        place.set_xscale("logit")
        place.set_xticks(RECALLS, [f"{recall:g}" for recall in RECALLS])
        place.set_xticks([], minor=True)
        place.set_xlim(least * 0.9, 0.9997)
    lines = {line.get_label(): line for place in axes[0] for line in place.get_lines()}
    beside = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5)}
    axes[0][-1].legend(lines.values(), lines.keys(), fontsize=7, **(beside if len(lines) > 3 else {"loc": "lower left"}))
    save(figure, folder, name, title)


def draw_batches(rows, folder, name, title):
    figure, axes = plt.subplots(1, 1, figsize=(5.5, 4))
    for ef in sorted({ef_of(row) for row in rows}):
        points = sorted((int(row["batch"]), number(row, "queries_per_second"), number(row, "recall")) for row in rows if ef_of(row) == ef)
        recall = points[-1][2]  # of the most queries: a batch of one says little of it
        axes.plot([p[0] for p in points], [p[1] for p in points], marker="o", markersize=3, linewidth=1, label=f"ef_search {ef}, recall {recall:.3f}")
    tidy(axes, "", "queries a batch", "queries/s", log_x=True)
    axes.legend(fontsize=7)
    save(figure, folder, name, title)


def fastest(rows):
    """Queries/s at the recall that growth is drawn at."""
    return max((number(row, "queries_per_second") for row in rows if number(row, "recall") >= GROWTH_RECALL), default=None)


def draw_growth(builds, searches, folder, name):
    """Of sets that differ in their number of rows; of several builds of one the median."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4))
    for family, method in dict.fromkeys((family_of(row), row["method"]) for row in builds):
        own = [row for row in builds if (family_of(row), row["method"]) == (family, method)]
        sizes = sorted({int(row["rows"]) for row in own})
        times = [statistics.median(number(row, "host_ms") / 1e3 for row in own if int(row["rows"]) == size) for size in sizes]
        found = [fastest([row for row in searches if (family_of(row), row["method"], int(row["rows"])) == (family, method, size)]) for size in sizes]
        for place, values in zip(axes, (times, found)):
            points = [point for point in zip(sizes, values) if point[1] is not None]
            if len(points) > 1:
                place.plot([p[0] for p in points], [p[1] for p in points], marker="o", markersize=3, label=f"{family}, {method}")
    tidy(axes[0], "build", "rows", "seconds", log_x=True)
    tidy(axes[1], f"search, recall@10 >= {GROWTH_RECALL}", "rows", "queries/s", log_x=True)
    axes[0].legend(fontsize=7)
    save(figure, folder, name, "growth with the rows")


def print_table(head, lines):
    for line in [head, ["---"] * len(head), *lines]:
        print("| " + " | ".join(line) + " |")
    print()


def shorter(recall):
    return f"{recall:.4f}".lstrip("0")


def print_tables(rows):
    tens = [row for row in rows if row["kind"] == "search" and row["k"] == "10" and row["batch"] == "1"]
    lines = []
    for data, method in dict.fromkeys((row["data"], row["method"]) for row in tens):
        cells = [data, method]
        for target in (0.9, 0.95, 0.99):
            enough = [row for row in tens if (row["data"], row["method"]) == (data, method) and number(row, "recall") >= target]
            best = max(enough, key=lambda row: number(row, "queries_per_second"), default=None)
            cells.append("-" if best is None else f"{number(best, 'queries_per_second'):,.0f} at {shorter(number(best, 'recall'))}")
        if cells[2:] != ["-"] * 3:
            lines.append(cells)
    print_table(["rows", "index", "recall@10 >= .90", ".95", ".99"], lines)
    lines = []
    calibrated = [row for row in rows if row["kind"] == "calibrated" and row["method"] in ("graph full", "graph half")]
    for key in dict.fromkeys((row["data"], row["method"], row["k"]) for row in calibrated):
        lines.append([*key, *(shorter(number(row, "recall")) for row in calibrated if (row["data"], row["method"], row["k"]) == key)])
    print_table(["rows", "index", "k", "asked .90", ".95", ".99"], lines)


def main():
    with open(sys.argv[1], newline="") as file:
        rows = list(csv.DictReader(file))
    folder = sys.argv[2]
    name = os.path.splitext(os.path.basename(sys.argv[1]))[0]
    searches = [row for row in rows if row["kind"] == "search"]
    growth = []
    for key in dict.fromkeys((row["data"], row["rows"]) for row in searches):
        own = [row for row in searches if (row["data"], row["rows"]) == key]
        sizes = {row["rows"] for row in searches if row["data"] == key[0]}
        own_name = key[0] + (f"-{key[1]}" if len(sizes) > 1 else "")
        usual = [row for row in own if not choice_of(row)]
        widths = [int(row["batch"]) for row in usual if int(row["k"]) == int(usual[0]["k"])]
        batch = max(set(widths), key=widths.count)
        curve = [row for row in usual if int(row["batch"]) == batch]
        degrees = {re.search(r"degree=\d+", row["settings"]) is not None and row["settings"].split()[0] for row in curve}

        def label(row):
            return row["method"] + (" " + row["settings"].split()[0] if len(degrees) > 1 else "")

        how = "one query at a time" if batch == 1 else f"{batch:,} queries a batch"
        draw_recall(curve, folder, f"{name}-{own_name}", label, f"{title_of(own)}, {how}")
        growth += [row for row in of_usual_degree(curve) if int(row["k"]) == 10]
        widest = [row for row in own if int(row["batch"]) == max(int(r["batch"]) for r in own if choice_of(r))] if len(usual) < len(own) else []
        if widest:
            efs = {ef_of(row) for row in widest if choice_of(row)}
            compared = [row for row in of_usual_degree(widest) if ef_of(row) in efs and row["method"] == widest[0]["method"]]
            draw_recall(compared, folder, f"{name}-{own_name}-choices", lambda row: choice_of(row) or "default", f"{title_of(own)}, choices of a search")
        for method, k in dict.fromkeys((row["method"], row["k"]) for row in usual):
            same = [row for row in of_usual_degree(usual) if (row["method"], row["k"]) == (method, k)]
            efs = [ef for ef in dict.fromkeys(ef_of(row) for row in same) if len({row["batch"] for row in same if ef_of(row) == ef}) > 2]
            if efs:
                efs = efs[:: max(1, len(efs) // 4)]
                draw_batches([row for row in same if ef_of(row) in efs], folder, f"{name}-{own_name}-batches", f"{title_of(own)}, {method}, k = {k}")
    growing = {family for family in map(family_of, growth) if len({row["rows"] for row in growth if family_of(row) == family}) > 1}
    builds = [row for row in of_usual_degree([row for row in rows if row["kind"] == "build"]) if family_of(row) in growing]
    if builds:
        draw_growth(builds, growth, folder, f"{name}-rows")
    if any(row["kind"] == "calibrated" for row in rows):
        print_tables(rows)


if __name__ == "__main__":
    main()
