"""Draw the figures of a folder of tables, and write its page: bench/pqtree/run --draw FOLDER.

figure3.svg, figure6.svg, figure7.svg, searches.svg and scale.svg; README.md by the template page.md, in which a line
"{{NAME}}" is a table or a figure. The same tables give the same files."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from page import Figures, lines_of, markdown, measured, number, read, single, table_of, write_page
from plot import best_points, plt, recall_axis, tidy

# Table 3 of the paper, SIFT1M, p = 2, k1 = 16, k2 = 8: least, most, mean squared error; ms of a query on a CPU.
PAPER_LINES = {
    "2": ("10874.9", "179870", "30534.6", "2.0"),
    "4": ("8967.8", "166722", "26257.9", "2.6"),
    "8": ("6709.2", "145082", "19719.4", "3.6"),
    "16": ("3318.3", "84640", "10509.7", "5.3"),
    "32": ("1035.3", "39143", "3686.71", "8.5"),
}
# Table 1 of the paper, SIFT1M: ms of a query, R@1, R@10, R@100.
PAPER_METHODS = [
    ("PQT, CPU", "4.89", "0.45", "0.86", "0.98"),
    ("PQT, CPU, exact re-ranking", "5.74", "0.98", "-", "-"),
    ("PQT, GPU (Titan X)", "0.02", "0.51", "0.83", "0.86"),
    ("IVFADC, of its authors, CPU", "11.2", "0.28", "0.70", "0.93"),
    ("GPU brute force", "23.7", "1", "1", "1"),
]
COLOURS = plt.get_cmap("tab10").colors
TARGETS = [0.9, 0.95, 0.98]


def device_of(row):
    return "GPU" if row["device"] == "cuda" else "CPU"


def index_of(row):
    return row["method"] if row["options"] == "default" else f"{row['method']}, {row['options']}"


def draw_order(drawer, folder):
    """Shares of the exact order's bins; and what the orders visit first for a query."""
    rows = read(folder, "figure3")
    if not rows:
        return
    figure, axes = plt.subplots(1, 2, figsize=(9, 4))
    for label, points in lines_of(rows, lambda row: row["order"], "bins", "share"):
        axes[0].plot(*zip(*points), marker="o", markersize=3, linewidth=1, label=label)
    tidy(axes[0], "mean of all queries", "first bins", "share of the exact order's", log_x=True)
    axes[0].set_yscale("linear")
    axes[0].legend(fontsize=7)
    for label, points in lines_of(read(folder, "figure3-ranks"), lambda row: row["order"], "first_rank", "ranks_of_second"):
        axes[1].step(*zip(*points), where="mid", linewidth=1, label=label)
    tidy(axes[1], "the query with the smallest slope: 300 bins", "rank in the first part", "ranks in the second")
    axes[1].set_yscale("linear")
    axes[1].legend(fontsize=7)
    drawer.save(figure, "figure3", "Figure 3: the order of bins, SIFT, 64 x 16 leaves a part")


def draw_lines(drawer, folder):
    rows = read(folder, "figure7")
    most = max((int(row["rows"]) for row in rows), default=0)
    rows = [row for row in rows if int(row["rows"]) == most]
    trees = sorted({row["tree"] for row in rows})
    if not trees:
        return
    figure, axes = plt.subplots(1, len(trees), figsize=(4.5 * len(trees), 4), squeeze=False)
    for place, tree in zip(axes.flat, trees):
        own = [row for row in rows if row["tree"] == tree]
        for parts in sorted({int(row["line_parts"]) for row in own}):
            points = sorted((float(row["results"]), float(row["recall"])) for row in own if int(row["line_parts"]) == parts)
            place.plot(*zip(*points), marker="o", markersize=3, linewidth=1, label=f"{parts} line parts")
        tidy(place, f"{tree} leaves a part", "first results", "R@n", log_x=True)
        place.set_yscale("linear")
    axes.flat[0].legend(fontsize=7)
    drawer.save(figure, "figure7", f"Figure 7: recall by line codes alone, {int(rows[0]['rows']):,} SIFT, {int(rows[0]['candidates']):,} candidates")


def draw_curves(drawer, folder, name, title, least):
    """Recall from `least` on against queries/s, a panel for each device and number of rows, in batches."""
    rows = [row for row in read(folder, name) if float(row["asked"]) == 0]
    panels = sorted({(row["device"], int(row["rows"])) for row in rows})
    if not panels:
        return
    labels = sorted({index_of(row) for row in rows})
    figure, axes = plt.subplots(1, len(panels), figsize=(4.5 * len(panels), 4), squeeze=False)
    for place, (device, count) in zip(axes.flat, panels):
        own = [row for row in rows if (row["device"], int(row["rows"])) == (device, count)]
        for label in dict.fromkeys(index_of(row) for row in own):
            points = best_points([{**row, "queries_per_second": 1e6 / float(row["us"])} for row in own if index_of(row) == label], least)
            if points:
                place.plot(*zip(*points), marker="o", markersize=3, linewidth=1, label=label, color=COLOURS[labels.index(label)])
        tidy(place, f"{'GPU' if device == 'cuda' else 'CPU, one thread'}, {count:,} rows, {own[0]['queries']} queries at once", "recall@10", "queries/s")
        recall_axis(place, least)
        place.legend(fontsize=6)
    drawer.save(figure, name, title)


def draw(drawer, folder):
    draw_order(drawer, folder)
    draw_lines(drawer, folder)
    rows = [row for row in read(folder, "figure6") if row["data"] == "generated"]
    devices = {row["device"] for row in rows}
    label = lambda row: f"{row['order']}{', ' + device_of(row) if len(devices) > 1 else ''}, {int(row['rows']):,} rows"
    single(drawer, lines_of(rows, label, "proposed", "recall"), "figure6",
           "Figure 6: recall of the rows of the nearest bins, without ranking", "rows proposed", "R@n", log_x=True, log_y=False)
    draw_curves(drawer, folder, "searches", "SIFT: recall against queries/s", 0.6)
    draw_curves(drawer, folder, "scale", "Generated rows of 96 dimensions", 0.4)


def methods_table(folder):
    lines = [[name, "-", "-", number(float(ms) * 1000), "-", r1, r10, r100, "-", "-"] for name, ms, r1, r10, r100 in PAPER_METHODS]
    for row in read(folder, "table1"):
        lines.append([f"{index_of(row)}, {device_of(row)}", number(row["rows"]), number(row["effort"]), number(row["us"]), number(row["one_query_us"]),
                      row["R@1"], row["R@10"], row["R@100"] if int(row["results"]) >= 100 else "-", row["recall@10"], number(row["bytes_a_row"])])
    return markdown(["index", "rows", "effort", "us a query", "one query, us", "R@1", "R@10", "R@100", "recall@10", "bytes a row"], lines)


def lines_table(folder):
    lines = [[f"the paper, 16 x 8", parts, *values, "-", number(float(values[3]) * 1000)] for parts, values in PAPER_LINES.items()]
    lines = [[*line[:5], *line[6:]] for line in lines]
    for row in read(folder, "table3"):
        lines.append([f"{row['tree']}, {device_of(row)}", row["line_parts"], number(row["least"]), number(row["most"]), number(row["mean"]), number(row["all_pairs"]), number(row["one_query_us"])])
    return markdown(["tree", "line parts", "least", "most", "mean", "mean, all pairs", "one query, us"], lines)


def at_recall(folder, name):
    """For each target the fastest point that reaches it."""
    rows = read(folder, name)
    lines = []
    for key in dict.fromkeys((row["device"], row["rows"], index_of(row)) for row in rows):
        own = [row for row in rows if (row["device"], row["rows"], index_of(row)) == key]
        cells = []
        for target in TARGETS:
            good = [row for row in own if float(row["recall"]) >= target]
            cells.append(f"{number(min(float(row['us']) for row in good))} / {number(min(float(row['one_query_us']) for row in good))}" if good else "-")
        best = max(own, key=lambda row: float(row["recall"]))
        lines.append([key[2], device_of(own[0]), number(key[1]), number(own[0]["build_s"]), number(own[0]["bytes_a_row"]), *cells, best["recall"]])
    return markdown(["index", "device", "rows", "build, s", "bytes a row", *[f"us at {target:g}, batch / one" for target in TARGETS], "highest recall"], lines)


def calibrated_table(folder):
    lines = []
    rows = read(folder, "calibrated")
    keys = dict.fromkeys((row["device"], row["data"], row["metric"], row["rows"], row["options"], row["k"]) for row in rows)
    for key in keys:
        own = {row["asked"]: row for row in rows if (row["device"], row["data"], row["metric"], row["rows"], row["options"], row["k"]) == key}
        cells = [cell for asked in ("0.9", "0.95") for cell in ((own[asked]["promised"], own[asked]["recall"]) if asked in own else ("-", "-"))]
        lines.append([f"{key[1]}, {key[2]}", "GPU" if key[0] == "cuda" else "CPU", number(key[3]), key[4], key[5], *cells])
    return markdown(["rows", "device", "number", "options", "k", "asked .90: promised", "measured", "asked .95: promised", "measured"], lines)


def asked_table(folder):
    rows = [row for row in read(folder, "searches") if float(row["asked"]) > 0]
    return markdown(["index", "device", "rows", "asked", "effort", "recall@10", "us, batch", "us, one"],
                    [[index_of(row), device_of(row), number(row["rows"]), row["asked"], number(row["effort"]), row["recall"], number(row["us"]), number(row["one_query_us"])] for row in rows])


def proposals_table(folder):
    """Of SIFT: at 4,096 rows about."""
    rows = [row for row in read(folder, "figure6") if row["data"] == "sift" and 3000 < float(row["proposed"]) < 10001]
    return markdown(["bins", "device", "rows", "rows proposed", "recall of the nearest"],
                    [[row["order"], device_of(row), number(row["rows"]), number(row["proposed"]), row["recall"]] for row in rows])


TABLES = {
    "figure6-sift": proposals_table,
    "table1": methods_table,
    "table3": lines_table,
    "searches-table": lambda folder: at_recall(folder, "searches"),
    "searches-asked": asked_table,
    "scale-table": lambda folder: at_recall(folder, "scale"),
    "calibrated": calibrated_table,
    "builds": lambda folder: table_of(folder, "builds", [("device", "device"), ("method", "method"), ("rows", "rows"), ("options", "options"), ("build, s", "build_s"), ("load, s", "load_s"), ("bytes a row", "bytes_a_row"), ("phases, s", "phases")]),
    "measured": measured,
}


def main():
    folder = sys.argv[1]
    draw(Figures(folder), folder)
    write_page(folder, os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.md"), TABLES)


if __name__ == "__main__":
    main()
