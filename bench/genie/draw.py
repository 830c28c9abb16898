"""Draw the figures of a folder of tables, and write its page: bench/genie/run --draw FOLDER.

A figure for each table that has one, figureN.svg, and recall.svg; README.md by the template page.md, in which a line
"{{NAME}}" is a table or a figure. The same tables give the same files."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from page import Figures, lines_of, markdown, measured, number, read, single, table_of, write_page
from plot import best_points, plt, recall_axis, tidy

SETS = ["fashion", "sift", "titles", "tweets", "adult", "proteins"]
PAPER_NAMES = {"fashion": "OCR", "sift": "SIFT", "titles": "DBLP", "tweets": "Tweets", "adult": "Adult"}
# Table 1 of the paper, seconds of a GeForce GTX TITAN X: build, transfer; query transfer, match, select.
PAPER_STAGES = {
    "fashion": ("81.39", "0.53", "0.015", "2.60", "0.004"),
    "sift": ("47.73", "0.34", "0.018", "7.04", "0.003"),
    "titles": ("12.53", "0.27", "0.024", "3.30", "14.00, verification included"),
    "tweets": ("12.10", "0.088", "0.0004", "1.19", "0.003"),
    "adult": ("1.06", "0.011", "0.0004", "1.82", "0.009"),
}
PAPER_ROWS = {"fashion": "3.5M", "sift": "4.5M", "titles": "5.0M", "tweets": "6.8M", "adult": "0.98M"}
PAPER_EDITS = {"0.05": "1.0", "0.1": "0.9844", "0.15": "0.9707", "0.2": "0.9277"}
COLOURS = plt.get_cmap("tab10").colors


def line_of(row):
    return f"{row['method']}, {'GPU' if row['device'] == 'cuda' else 'CPU'}"


def sets_of(rows):
    return [name for name in SETS if any(row["data"] == name for row in rows)]


def panels(drawer, rows, name, title, x, y, x_label, y_label, log_x=True):
    """A panel for each set, a line for each method and device."""
    names = sets_of(rows)
    if not names:
        return
    labels = sorted({line_of(row) for row in rows})
    columns = min(3, len(names))
    height = (len(names) + columns - 1) // columns
    figure, axes = plt.subplots(height, columns, figsize=(3.6 * columns, 3 * height), squeeze=False)
    for place, data in zip(axes.flat, names):
        for label, points in lines_of([row for row in rows if row["data"] == data], line_of, x, y):
            place.plot(*zip(*points), marker="o", markersize=3, linewidth=1, label=label, color=COLOURS[labels.index(label)])
        tidy(place, data, x_label, y_label, log_x=log_x)
        if not log_x:
            place.xaxis.set_major_locator(plt.MaxNLocator(4))
            place.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:,.0f}k")
    for place in list(axes.flat)[len(names) :]:
        place.set_axis_off()
    lines = {line.get_label(): line for place in axes.flat for line in place.get_lines()}
    axes.flat[0].legend(lines.values(), lines.keys(), fontsize=6)
    drawer.save(figure, name, title)


def draw_memory(drawer, rows):
    """Bytes a query, a group of bars for each set."""
    names = sets_of(rows)
    if not names:
        return
    bars = {}
    for row in rows:
        if row["method"].endswith("a list"):  # as much as c-PQ
            continue
        bars.setdefault(line_of(row), {})[row["data"]] = float(row["counter_bytes"]) + float(row["table_bytes"])
        bars.setdefault("32 bits a row", {})[row["data"]] = float(row["array_bytes"])
    figure, axes = plt.subplots(1, 1, figsize=(8, 4))
    width = 0.8 / len(bars)
    for i, (label, values) in enumerate(sorted(bars.items())):
        places = [j + (i - (len(bars) - 1) / 2) * width for j, data in enumerate(names) if data in values]
        axes.bar(places, [values[data] for data in names if data in values], width, label=label)
    tidy(axes, "", "", "bytes a query")
    axes.set_xticks(range(len(names)), names)
    axes.legend(fontsize=7)
    drawer.save(figure, "figure8", "Figure 8: memory of counters and tables")


def draw_recall(drawer, rows):
    """Recall and the approximation ratio against queries/s."""
    if not rows:
        return
    figure, axes = plt.subplots(1, 2, figsize=(9, 4))
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        recalls = best_points([{**row, "recall": row["recall_at_k"]} for row in own], 0.5)
        speeds = {speed for _, speed in recalls}
        ratios = sorted((float(row["ratio"]), float(row["queries_per_second"])) for row in own if float(row["queries_per_second"]) in speeds)
        for place, points in zip(axes, (recalls, ratios)):
            if points:
                place.plot(*zip(*points), marker="o", markersize=3, linewidth=1, label=method)
    tidy(axes[0], "", "recall@10", "queries/s")
    recall_axis(axes[0], 0.5)
    tidy(axes[1], "", "approximation ratio", "queries/s")
    axes[0].legend(fontsize=7)
    drawer.save(figure, "recall", f"{int(rows[0]['rows']):,} SIFT, one query at a time")


def draw(drawer, folder):
    rows = [row for row in read(folder, "figure5") if row["similarity"] != "all"]
    if rows:
        lines = [("least number of functions", sorted((float(row["similarity"]), float(row["functions"])) for row in rows))]
        single(drawer, lines + [("the paper's, read from a figure", [(0, 237), (1, 237)])], "figure5",
               "Figure 5: functions for an error of .06 with a probability of .94", "similarity", "functions", log_y=False)
    rows = [{**row, "query_ms": 1e3 * float(row["total_s"]) / int(row["queries"])} for row in read(folder, "figure7")]
    panels(drawer, rows, "figure7", "Figure 7: milliseconds a query by the number of rows", "rows", "query_ms", "rows", "ms a query", False)
    panels(drawer, read(folder, "figure13"), "figure13", "Figure 13: milliseconds a query by the number of queries", "queries", "query_ms", "queries", "ms a query")
    draw_memory(drawer, read(folder, "figure8"))
    rows = read(folder, "figure9")
    label = lambda row: f"{'by counts alone' if row['method'] == 'counts' else row['candidates'] + ' candidates ranked'}, width {float(row['width']):.0f}"
    single(drawer, lines_of(rows, label, "k", "ratio"), "figure9", "Figure 9: approximation ratio by k, SIFT", "k", "approximation ratio", True, False)
    single(drawer, lines_of(read(folder, "figure11"), line_of, "queries", "match_s"), "figure11",
           "Figure 11: seconds of matching by the number of queries, Adult", "queries", "seconds", True)
    draw_recall(drawer, read(folder, "recall"))


def stages_table(folder):
    rows = read(folder, "table1")
    lines = []
    for data in SETS:
        if data in PAPER_STAGES:
            lines.append([f"{PAPER_NAMES[data]}, the paper", PAPER_ROWS[data], "1,024", *PAPER_STAGES[data], "-", "-"])
        for row in [row for row in rows if row["data"] == data and not row["method"].endswith("a list")]:
            times = [number(row[column]) for column in ("build_s", "transfer_s", "query_transfer_s", "match_s", "select_s")]
            lines.append([f"{data}, {line_of(row)}", number(row["rows"]), number(row["queries"]), *times, row["right"], number(row["target_found"])])
    return markdown(["data", "rows", "queries", "lists", "transfer", "query transfer", "match", "select", "right", "target found"], lines)


def edits_table(folder):
    lines = []
    for row in read(folder, "table3"):
        paper = PAPER_EDITS.get(row["edited"], "-") if row["edits"] == "substitutions" and row["method"] == "one round" else "-"
        lines.append([row["edits"].replace(",", ", "), row["edited"], row["method"], paper, number(row["accuracy"]), number(row["proved"]), number(row["query_ms"])])
    return markdown(["edits", "share edited", "search", "accuracy, the paper", "accuracy", "proved", "ms a query"], lines)


TABLES = {
    "table1": stages_table,
    "table2": lambda folder: table_of(folder, "table2", [("sigma", "sigma"), ("candidates ranked", "candidates"), ("exact nearest row", "same_row"), ("distance ratio", "ratio"), ("among the 100 nearest", "rank_100"), ("similarity within 2 epsilon", "within_2_epsilon"), ("right", "right")]),
    "table3": edits_table,
    "figure8-table": lambda folder: table_of(folder, "figure8", [("device", "device"), ("method", "method"), ("data", "data"), ("rows", "rows"), ("counters", "counter_bytes"), ("tables", "table_bytes"), ("32 bits a row", "array_bytes"), ("seconds", "total_s"), ("queries", "queries"), ("right", "right")]),
    "figure11-table": lambda folder: table_of(folder, "figure11", [("device", "device"), ("method", "method"), ("rows", "rows"), ("queries", "queries"), ("match", "match_s"), ("other", "other_s"), ("right", "right")]),
    "candidates": lambda folder: table_of(folder, "candidates", [("width", "width"), ("candidates", "candidates"), ("recall@10", "recall_at_k"), ("approximation ratio", "ratio"), ("right", "right")]),
    "certified": lambda folder: table_of(folder, "certified", [("search", "method"), ("queries", "queries"), ("k", "k"), ("within", "within"), ("characters", "characters"), ("edits", "edits"), ("ms", "whole_ms"), ("queries/s", "queries_per_second"), ("checked", "right")]),
    "measured": measured,
}


def main():
    draw(Figures(sys.argv[1]), sys.argv[1])
    write_page(sys.argv[1], os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.md"), TABLES)


if __name__ == "__main__":
    main()
