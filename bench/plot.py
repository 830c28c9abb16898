"""Draw bars of the results of bench/run: queries a second at equal recall, and seconds of CREATE INDEX; one SVG for each data set."""

import csv
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLOURS = {"pgwarp": "#0b6e4f", "pgvector": "#b0b0b0"}


def colour(method):
    return COLOURS["pgvector" if method.startswith("pgvector") else "pgwarp"]


def bars(axes, rows, value, label, title):
    """Horizontal bars, the longest on top."""
    rows = sorted(rows, key=value)
    axes.barh([label(row) for row in rows], [value(row) for row in rows], color=[colour(row["method"]) for row in rows])
    for place, row in enumerate(rows):
        axes.annotate(f" {value(row):,.4g}", (value(row), place), va="center", fontsize=8)
    axes.set_title(title, fontsize=10, loc="left")
    axes.margins(x=0.15)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


def draw(name, rows, folder):
    searches = [row for row in rows if row["kind"] == "search" and float(row["target_recall"]) > 0]
    builds = [row for row in rows if row["kind"] == "build"]
    panels = sorted({(float(row["target_recall"]), int(row["clients"])) for row in searches})
    figure, axes = plt.subplots(len(panels) + 1, 1, figsize=(8, 2.4 * (len(panels) + 1)), squeeze=False)
    for place, (target, clients) in zip(axes[:, 0], panels):
        chosen = [r for r in searches if float(r["target_recall"]) == target and int(r["clients"]) == clients]
        bars(
            place,
            chosen,
            lambda row: float(row["queries_per_second"]),
            lambda row: f"{row['method']}{' (calibrated)' if row['settings'].startswith('pgwarp.recall=') else ''}, "
            f"recall {float(row['recall_at_k']):.3f}",
            f"queries/s, recall@{rows[0]['k']} >= {target:g}, {clients} client{'s' if clients > 1 else ''}",
        )
    bars(axes[-1, 0], builds, lambda row: float(row["build_seconds"]), lambda row: row["method"], "CREATE INDEX, seconds")
    figure.suptitle(f"{name}: {rows[0]['rows']} rows of {rows[0]['dimensions']} dimensions", fontsize=11)
    figure.tight_layout()
    figure.savefig(f"{folder}/{name}.svg")
    print(f"{folder}/{name}.svg")


def main():
    with open(sys.argv[1], newline="") as file:
        rows = list(csv.DictReader(file))
    for name in dict.fromkeys(row["data"] for row in rows):
        draw(name, [row for row in rows if row["data"] == name], sys.argv[2])


if __name__ == "__main__":
    main()
