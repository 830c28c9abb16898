"""Draw the figures of the benchmarks: bench/plot --help.

A file of bench/run gives bars of queries a second at equal recall and of CREATE INDEX, NAME-DATA.svg. The others give
  NAME-DATA.svg          recall@k against queries/s of each index, a panel for each k
  NAME-DATA-choices.svg  the same of SONG's choices for a search (figures 7 and 8 of the paper)
  NAME-DATA-batches.svg  queries/s by the size of a batch (figure 9)
  NAME-tables.svg        recall@10 against queries/s of each table, a panel for each size of a batch
  NAME-rows.svg          seconds of a build and queries/s by the number of rows
A file of bench/filters gives queries/s by the share of rows that pass, NAME-DATA.svg.
The same figures give the same file."""

import csv
import math
import os
import re
import statistics
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams.update({"svg.hashsalt": "pgwarp", "svg.fonttype": "none", "path.simplify": True})
import matplotlib.pyplot as plt

COLOURS = {"pgwarp": "#0b6e4f", "pgvector": "#b0b0b0"}
VISITED = {"0": "hash", "1": "bloom", "2": "cuckoo"}
GROWTH_RECALL = 0.95
FILTER_RECALL = 0.99
FILTER_LINES = {"filter columns": "-", "above the index": "--", "strict_order": "-."}
MOST_RECALL = 0.9995  # the axis of recall has no end: more is drawn here
RECALLS = [0.5, 0.8, 0.9, 0.95, 0.99, 0.999]
# The plots of docs/plots: the file of docs/figures, the plot's name in it, and its name there.
DOCS = (
    ("pgvector-cpu", "sift-1m", "pgvector-sift-1m"),
    ("pgvector-cpu", "embedding-20k", "pgvector-embedding-20k"),
    ("tables-gpu", "tables", "gpu-tables"),
    ("graph-cpu", "sift-100k", "graph-cpu-sift-100k"),
    ("graph-cpu", "rows", "graph-cpu-rows"),
    ("graph-gpu", "sift-1000000", "graph-gpu-sift-1m"),
    ("graph-gpu", "sift-1000000-choices", "graph-gpu-choices"),
    ("graph-gpu", "sift-1000000-batches", "graph-gpu-batches"),
    ("graph-gpu", "rows", "graph-gpu-rows"),
    ("filters", "embedding-200k", "filters-embedding-200k"),
)


def number(row, column):
    return float(row[column])


def setting(row, name):
    """A number of the row's settings, else none."""
    found = re.search(rf"\b{name}=(\d+)", row["settings"])
    return int(found.group(1)) if found else None


def ef_of(row):
    return setting(row, "ef(?:_search)?")


def of_usual_degree(rows):
    """Without graphs of another degree than most of them have, or than the least of two that are as frequent."""
    degrees = [setting(row, "degree") for row in rows]
    usual = max(sorted(set(degrees) - {None}), key=degrees.count, default=None)
    return [row for row, degree in zip(rows, degrees) if degree in (usual, None)]


def family_of(row):
    """The name that sets share which differ in their number of rows."""
    return re.sub(r"-\d+[km]?$", "", row["data"])


def choice_of(row):
    """The settings of a search other than the usual ones, in words."""
    usual = r"(ef|ef_search|degree|lists|probes|refine_factor|default)(=|$)"
    parts = [part for part in row["settings"].split() if not re.match(usual, part)]
    return " ".join("visited=" + VISITED.get(part[8:], part[8:]) if part.startswith("visited=") else part for part in parts)


def title_of(rows):
    return f"{rows[0]['data']}: {int(rows[0]['rows']):,} x {rows[0]['dimensions']}"


def tidy(axes, title, x, y, log_x=False):
    axes.set_title(title, fontsize=10, loc="left")
    axes.set(xlabel=x, ylabel=y, yscale="log", xscale="log" if log_x else axes.get_xscale())
    axes.grid(True, which="major", linewidth=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


def recall_axis(axes, least):
    axes.set_xscale("logit")
    axes.set_xticks(RECALLS, [f"{recall:g}" for recall in RECALLS])
    axes.set_xticks([], minor=True)
    axes.set_xlim(least * 0.9, 0.9997)


def compact(text):
    """An SVG without comments, metadata and groups that say nothing; numbers of one decimal, an element a line."""
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r"-?\d+\.\d{2,}", lambda found: f"{float(found.group()):.1f}".rstrip("0").rstrip("."), text)
    text = re.sub(r"\s*\n\s*", " ", text)
    text = re.sub(r'<g id="\w+_\d+">', "<g>", text)
    unwrapped = ""
    while unwrapped != text:  # groups without attributes, the inner ones first
        unwrapped, text = text, re.sub(r"<g>((?:(?!</?g\b).)*)</g>", r"\1", text)
    text = re.sub(r">\s+<", "> <", text)
    return re.sub(r"> <", ">\n<", text).strip() + "\n"


class Drawer:
    """Saves the figures that are wanted, by name: all of them where no names are given."""

    def __init__(self, folder, name, wanted=None):
        self.folder, self.name, self.wanted = folder, name, wanted

    def wants(self, name):
        return self.wanted is None or name in self.wanted

    def save(self, figure, name, title):
        figure.suptitle(title, fontsize=11 if figure.get_figwidth() > 6 else 9)
        figure.tight_layout()
        path = os.path.join(self.folder, (f"{self.name}-{name}" if self.wanted is None else self.wanted[name]) + ".svg")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
        with open(path, encoding="utf-8") as file:
            text = compact(file.read())
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        print(path)

    def bars(self, rows, name):
        """Queries a second at equal recall, and CREATE INDEX: the longest bar on top."""
        searches = [row for row in rows if row["kind"] == "search" and number(row, "target_recall") > 0]
        builds = [row for row in rows if row["kind"] == "build"]
        panels = sorted({(number(row, "target_recall"), int(row["clients"])) for row in searches})
        if not searches or not self.wants(name):
            return
        parts = [
            (
                f"queries/s, recall@{rows[0]['k']} >= {target:g}, {clients} client{'s' if clients > 1 else ''}",
                [row for row in searches if (number(row, "target_recall"), int(row["clients"])) == (target, clients)],
                "queries_per_second",
            )
            for target, clients in panels
        ] + [("CREATE INDEX, seconds", builds, "build_seconds")]
        figure, axes = plt.subplots(len(parts), 1, figsize=(8, 0.7 * len(parts) + 0.2 * sum(len(part[1]) for part in parts)), squeeze=False)
        for place, (title, chosen, column) in zip(axes[:, 0], parts):
            chosen = sorted(chosen, key=lambda row: number(row, column))
            colours = [COLOURS["pgvector" if row["method"].startswith("pgvector") else "pgwarp"] for row in chosen]
            bars = place.barh(range(len(chosen)), [number(row, column) for row in chosen], color=colours)
            place.bar_label(bars, [f"{number(row, column):,.4g}" for row in chosen], padding=2, fontsize=8)
            place.set_yticks(range(len(chosen)), [bar_label(row) for row in chosen])
            place.set_title(title, fontsize=10, loc="left")
            place.margins(x=0.15)
            place.spines[["top", "right"]].set_visible(False)
            place.tick_params(labelsize=8)
        self.save(figure, name, title_of(rows))

    def recall(self, rows, name, panel, panel_title, name_of, title):
        """A panel for each value of a column, a line for each name, from a recall on where all lines begin."""
        if not self.wants(name):
            return
        values = sorted({int(row[panel]) for row in rows})
        figure, axes = plt.subplots(1, len(values), figsize=(4.2 * len(values), 4), squeeze=False)
        least = max([recall for recall in RECALLS if recall <= min(number(row, "recall") for row in rows)], default=RECALLS[0])
        names = list(dict.fromkeys(name_of(row) for row in rows))
        colours = dict(zip(names, plt.get_cmap("tab10" if len(names) <= 10 else "tab20").colors))
        for place, value in zip(axes[0], values):
            for line, colour in colours.items():
                own = [row for row in rows if int(row[panel]) == value and name_of(row) == line]
                points = best_points(own, least)
                if points:
                    place.plot(*zip(*points), marker="o", markersize=3, linewidth=1, label=line, color=colour)
            tidy(place, panel_title(value), f"recall@{rows[0]['k'] if panel != 'k' else value}", "queries/s")
            recall_axis(place, least)
        lines = {line.get_label(): line for place in axes[0] for line in place.get_lines()}
        beside = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5)}
        axes[0][-1].legend(lines.values(), lines.keys(), fontsize=7, **(beside if len(lines) > 3 else {"loc": "lower left"}))
        self.save(figure, name, title)

    def batches(self, rows, name, title):
        if not self.wants(name):
            return
        figure, axes = plt.subplots(1, 1, figsize=(5.5, 4))
        for ef in sorted({ef_of(row) for row in rows}):
            points = sorted((int(row["batch"]), number(row, "queries_per_second"), number(row, "recall")) for row in rows if ef_of(row) == ef)
            label = f"ef_search {ef}, recall {points[-1][2]:.3f}"  # of the widest batch: one query says little of it
            axes.plot([p[0] for p in points], [p[1] for p in points], marker="o", markersize=3, linewidth=1, label=label)
        tidy(axes, "", "queries a batch", "queries/s", log_x=True)
        axes.legend(fontsize=7)
        self.save(figure, name, title)

    def shares(self, rows, name):
        """By the share of rows that pass, at a recall: of several places of these rows the slowest."""
        if not self.wants(name):
            return
        figure, axes = plt.subplots(1, 2, figsize=(11, 4.5))
        lines = list(dict.fromkeys((row["method"], row["filter"]) for row in rows))
        methods = list(dict.fromkeys(method for method, _ in lines))
        places_of = {}
        for row in sorted(rows, key=lambda row: number(row, "share")):
            places_of.setdefault(number(row, "share"), set()).add(row["where"])
        for place, many in zip(axes, (False, True)):
            for method, how in lines:
                own = [row for row in rows if (row["method"], row["filter"], row["clients"] != "1") == (method, how, many)]
                points = [(share, slowest_place(own, share, places)) for share, places in places_of.items()]
                points = [(100 * share, math.nan if rate is None else rate) for share, rate in points]
                if not all(math.isnan(rate) for _, rate in points):
                    style = FILTER_LINES.get(how, ":")
                    colour = plt.get_cmap("tab10").colors[methods.index(method)]
                    place.plot(*zip(*points), style, marker="o", markersize=3, linewidth=1, label=f"{method}, {how}", color=colour)
            most = max(int(row["clients"]) for row in rows)
            tidy(place, f"{most} clients, fewer where slow" if many else "1 client", "% of the rows pass", "queries/s", log_x=True)
            place.xaxis.set_major_formatter("{x:g}")
            place.invert_xaxis()
        axes[1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
        self.save(figure, name, f"{title_of(rows)}, recall@{rows[0]['k']} >= {FILTER_RECALL}")

    def growth(self, builds, searches, name):
        """Of sets that differ in their number of rows; of several builds of one the median."""
        if not self.wants(name):
            return
        figure, axes = plt.subplots(1, 2, figsize=(9, 4))
        for key in dict.fromkeys((family_of(row), row["method"]) for row in builds):
            own = [row for row in builds if (family_of(row), row["method"]) == key]
            sizes = sorted({int(row["rows"]) for row in own})
            times = [statistics.median(number(row, "host_ms") / 1e3 for row in own if int(row["rows"]) == size) for size in sizes]
            rates = [fastest([row for row in searches if (family_of(row), row["method"], int(row["rows"])) == (*key, size)]) for size in sizes]
            for place, values in zip(axes, (times, rates)):
                points = [point for point in zip(sizes, values) if point[1] is not None]
                if len(points) > 1:
                    place.plot(*zip(*points), marker="o", markersize=3, label=", ".join(key))
        tidy(axes[0], "build", "rows", "seconds", log_x=True)
        tidy(axes[1], f"search, recall@10 >= {GROWTH_RECALL}", "rows", "queries/s", log_x=True)
        axes[0].legend(fontsize=7)
        self.save(figure, name, "growth with the rows")


def bar_label(row):
    if row["kind"] == "build":
        return row["method"]
    calibrated = " (calibrated)" if row["settings"].startswith("pgwarp.recall=") else ""
    return f"{row['method']}{calibrated}, recall {number(row, 'recall_at_k'):.3f}"


def best_points(rows, least):
    """Points of recall and speed beside which no other has more of both."""
    points = [(min(number(row, "recall"), MOST_RECALL), number(row, "queries_per_second")) for row in rows]
    points = sorted(point for point in points if point[0] >= least)
    return [p for p in points if not any(other != p and other[0] >= p[0] and other[1] >= p[1] for other in points)]


def slowest_place(rows, share, places):
    """Queries/s of the fastest setting at the recall of filters, for the place of the rows where that is least; none where one is missing."""
    enough = [row for row in rows if number(row, "share") == share and number(row, "recall") >= FILTER_RECALL]
    rates = [[number(row, "queries_per_second") for row in enough if row["where"] == place] for place in places]
    return min(map(max, rates)) if all(rates) else None


def fastest(rows):
    """Queries/s at the recall that growth is drawn at."""
    return max((number(row, "queries_per_second") for row in rows if number(row, "recall") >= GROWTH_RECALL), default=None)


def with_recall_of_widest(rows):
    """Rows whose recall is that of the widest batch with the same settings: one query says little of it."""
    key = lambda row: (row["data"], row["rows"], row["method"], row["settings"])
    widest = {key(row): row["recall"] for row in sorted(rows, key=lambda row: int(row["batch"]))}
    return [{**row, "recall": widest[key(row)]} for row in rows]


def draw_table(drawer, own, name):
    """The plots of one table's searches; returns the rows that growth is drawn of."""
    usual = [row for row in own if not choice_of(row)]
    widths = [int(row["batch"]) for row in usual if row["k"] == usual[0]["k"]]
    batch = max(set(widths), key=widths.count)
    curve = [row for row in usual if int(row["batch"]) == batch]
    degrees = {setting(row, "degree") for row in curve} - {None}
    how = "one query at a time" if batch == 1 else f"{batch:,} queries a batch"
    of_k = lambda k: f"k = {k}"

    def label(row):
        return row["method"] + (f" degree={setting(row, 'degree')}" if len(degrees) > 1 and setting(row, "degree") else "")

    drawer.recall(curve, name, "k", of_k, label, f"{title_of(own)}, {how}")
    if len(usual) < len(own):
        widest = [row for row in own if int(row["batch"]) == max(int(row["batch"]) for row in own if choice_of(row))]
        efs = {ef_of(row) for row in widest if choice_of(row)}
        compared = [row for row in of_usual_degree(widest) if ef_of(row) in efs and row["method"] == widest[0]["method"]]
        drawer.recall(compared, f"{name}-choices", "k", of_k, lambda row: choice_of(row) or "default", f"{title_of(own)}, choices of a search")
    for method, k in dict.fromkeys((row["method"], row["k"]) for row in usual):
        same = [row for row in of_usual_degree(usual) if (row["method"], row["k"]) == (method, k)]
        efs = [ef for ef in dict.fromkeys(map(ef_of, same)) if ef and len({row["batch"] for row in same if ef_of(row) == ef}) > 2]
        efs = efs[:: max(1, len(efs) // 4)]
        if efs:
            drawer.batches([row for row in same if ef_of(row) in efs], f"{name}-batches", f"{title_of(own)}, {method}, k = {k}")
    return [row for row in of_usual_degree(curve) if int(row["k"]) == 10]


def draw(drawer, rows):
    if "share" in rows[0]:
        for name in dict.fromkeys(row["data"] for row in rows):
            drawer.shares([row for row in rows if row["data"] == name and row["kind"] == "search"], name)
        return
    if "clients" in rows[0]:
        for name in dict.fromkeys(row["data"] for row in rows):
            drawer.bars([row for row in rows if row["data"] == name], name)
        return
    if "kind" not in rows[0]:  # bench/gpu/run
        drawer.recall(
            with_recall_of_widest(rows),
            "tables",
            "batch",
            lambda batch: f"{batch:,} quer{'y' if batch == 1 else 'ies'} a batch",
            lambda row: f"{row['data']}, {int(row['rows']):,} x {row['dimensions']}, {row['method'].split()[0]}",
            "ivfadc and exact, operands on the device",
        )
        return
    searches = [row for row in rows if row["kind"] == "search"]
    growth = []
    for data, size in dict.fromkeys((row["data"], row["rows"]) for row in searches):
        own = [row for row in searches if (row["data"], row["rows"]) == (data, size)]
        sizes = {row["rows"] for row in searches if row["data"] == data}
        growth += draw_table(drawer, own, data + (f"-{size}" if len(sizes) > 1 else ""))
    growing = {family for family in map(family_of, growth) if len({row["rows"] for row in growth if family_of(row) == family}) > 1}
    builds = [row for row in of_usual_degree([row for row in rows if row["kind"] == "build"]) if family_of(row) in growing]
    if builds:
        drawer.growth(builds, growth, "rows")


def shorter(recall):
    return f"{recall:.4f}".lstrip("0")


def print_table(head, lines):
    for line in [head, ["---"] * len(head), *lines]:
        print("| " + " | ".join(line) + " |")
    print()


def print_tables(rows):
    """The fastest settings of one query at a time at k = 10, and what calibrated searches found."""
    tens = [row for row in rows if row["kind"] == "search" and row["k"] == "10" and row["batch"] == "1"]
    lines = []
    for key in dict.fromkeys((row["data"], row["method"]) for row in tens):
        cells = []
        for target in (0.9, 0.95, 0.99):
            enough = [row for row in tens if (row["data"], row["method"]) == key and number(row, "recall") >= target]
            best = max(enough, key=lambda row: number(row, "queries_per_second"), default=None)
            cells.append("-" if best is None else f"{number(best, 'queries_per_second'):,.0f} at {shorter(number(best, 'recall'))}")
        if cells != ["-"] * 3:
            lines.append([*key, *cells])
    print_table(["rows", "index", "recall@10 >= .90", ".95", ".99"], lines)
    calibrated = [row for row in rows if row["kind"] == "calibrated" and row["method"] in ("graph full", "graph half")]
    key = lambda row: (row["data"], row["method"], row["k"])
    lines = [[*k, *(shorter(number(row, "recall")) for row in calibrated if key(row) == k)] for k in dict.fromkeys(map(key, calibrated))]
    print_table(["rows", "index", "k", "asked .90", ".95", ".99"], lines)


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def main():
    if sys.argv[1] == "--tables":
        print_tables(read(sys.argv[2]))
    elif sys.argv[1] == "--docs":
        for name in dict.fromkeys(name for name, _, _ in DOCS):
            wanted = {plot: target for source, plot, target in DOCS if source == name}
            draw(Drawer("docs/plots", name, wanted), read(f"docs/figures/{name}.csv"))
    else:
        os.makedirs(sys.argv[2], exist_ok=True)
        draw(Drawer(sys.argv[2], os.path.splitext(os.path.basename(sys.argv[1]))[0]), read(sys.argv[1]))


if __name__ == "__main__":
    main()
