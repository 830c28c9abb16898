"""Pages of experiments: tables of a folder, NAME.tsv, as Markdown, and a page by a template. Used by the draw.py of
genie and pqtree. The same tables give the same files."""

import csv
import os

from plot import Drawer, plt, tidy


def read(folder, name):
    path = os.path.join(folder, name + ".tsv")
    if not os.path.exists(path):
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def lines_of(rows, key, x, y):
    """(label, points) for each value of key, in order of the values."""
    labels = sorted(dict.fromkeys(key(row) for row in rows))
    return [(label, sorted((float(row[x]), float(row[y])) for row in rows if key(row) == label)) for label in labels]


def single(drawer, lines, name, title, x_label, y_label, log_x=False, log_y=True):
    """A figure of one panel with lines (label, points)."""
    if not lines:
        return
    figure, axes = plt.subplots(1, 1, figsize=(5.5, 4))
    for label, points in lines:
        axes.plot(*zip(*points), marker="o", markersize=3, linewidth=1, label=label)
    tidy(axes, "", x_label, y_label, log_x=log_x)
    if not log_y:
        axes.set_yscale("linear")
    axes.legend(fontsize=7)
    drawer.save(figure, name, title)


def number(text):
    """Three or four digits."""
    try:
        value = float(text)
    except ValueError:
        return text
    if value == float("inf"):  # no bound
        return "-"
    if value == int(value) and abs(value) < 1e12:
        return f"{int(value):,}"
    return f"{value:.{4 if 0.1 <= value < 10 else 3}g}" if abs(value) < 1000 else f"{value:,.0f}"


def markdown(head, lines):
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])


def table_of(folder, name, columns):
    """Columns: (heading, column)."""
    return markdown([heading for heading, _ in columns], [[number(row[column]) for _, column in columns] for row in read(folder, name)])


def measured(folder):
    """Which tables are from which machine and commit."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".tsv"):
            for row in read(folder, name[:-4]):
                found.setdefault((row["machine"], row["commit"]), set()).add(name[:-4])
    return "\n".join(f"- {machine}, commit {commit}: {', '.join(sorted(names))}" for (machine, commit), names in sorted(found.items()))


def write_page(folder, template, tables):
    """Writes README.md by the template, in which a line "{{NAME}}" is one of the tables, functions of the folder, or a figure."""
    with open(template, encoding="utf-8") as file:
        lines = file.read().split("\n")
    out = []
    for line in lines:
        name = line[2:-2] if line.startswith("{{") and line.endswith("}}") else None
        if name is None:
            out.append(line)
        elif name in tables:
            known = name == "measured" or os.path.exists(os.path.join(folder, name.split("-")[0] + ".tsv"))
            out.append(tables[name](folder) if known else "Not measured.")
        elif os.path.exists(os.path.join(folder, name + ".svg")):
            out.append(f"![{name}]({name}.svg)")
        else:
            out.append("Not measured.")
    path = os.path.join(folder, "README.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out))
    print(path)


class Figures(Drawer):
    """All of them, under their own names."""

    def __init__(self, folder):
        super().__init__(folder, "", None)

    def save(self, figure, name, title):
        self.wanted = {name: name}
        super().save(figure, name, title)
