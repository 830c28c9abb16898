"""Draw recall against queries a second, one panel for each batch size and a line for each table, of the results of bench/gpu/run: plot.py CSV SVG."""

import csv
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def label(row):
    return f"{row['data']}, {int(row['rows']):,} x {row['dimensions']}"


def recalls(rows):
    """Recall of each setting over the most queries that were asked: a batch of one says little of it."""
    best = {}
    for row in sorted(rows, key=lambda row: int(row["batch"])):
        best[label(row), row["method"], row["settings"]] = float(row["recall"])
    return best


def draw(axes, rows, batch, recall):
    for name in dict.fromkeys(label(row) for row in rows):
        chosen = [row for row in rows if label(row) == name]
        points = sorted(
            (recall[name, r["method"], r["settings"]], float(r["queries_per_second"])) for r in chosen if r["method"] != "exact"
        )
        (line,) = axes.plot([p[0] for p in points], [p[1] for p in points], marker="o", markersize=3, label=name)
        for row in chosen:
            if row["method"] == "exact":
                axes.plot(float(row["recall"]), float(row["queries_per_second"]), marker="*", color=line.get_color())
    axes.set_yscale("log")
    axes.set_xlim(left=0.8)
    axes.set_xlabel("recall@10")
    axes.set_ylabel("queries/s")
    axes.set_title(f"{batch} quer{'y' if batch == 1 else 'ies'} a batch", fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


def main():
    with open(sys.argv[1], newline="") as file:
        rows = list(csv.DictReader(file))
    batches = sorted({int(row["batch"]) for row in rows})
    figure, axes = plt.subplots(1, len(batches), figsize=(4.5 * len(batches), 4.2), squeeze=False)
    for place, batch in zip(axes[0], batches):
        draw(place, [row for row in rows if int(row["batch"]) == batch], batch, recalls(rows))
    axes[0][0].legend(fontsize=7, loc="lower left")
    figure.suptitle("ivfadc (lines) and exact (stars), operands on the device", fontsize=11)
    figure.tight_layout()
    figure.savefig(sys.argv[2])
    print(sys.argv[2])


if __name__ == "__main__":
    main()
