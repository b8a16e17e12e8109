# SPDX-License-Identifier: GPL-2.0
"""What the tools of scripts/bench share: figures, expressions over them, fits.

A file of results is made by `report collect`: cases, and figures with a value for
base and for series. In an expression a figure is KERNEL:CASE/FIGURE.
"""

import json
import pathlib
import re
import sys

TERM = re.compile(r"(base|series):([^\s()]+)")
SUM = r"[-+*/.\d\s()e]+"


def load(path):
    """The file's data, and its figures by CASE/FIGURE."""
    try:
        data = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: error: no results at {path}\n"
                 f"{pathlib.Path(sys.argv[0]).name}: way out: make bench")
    return data, {f"{f['case']}/{f['figure']}": f for f in data["figures"]}


def by_term(figures):
    """Values by KERNEL:CASE/FIGURE, of those that were measured."""
    return {f"{kernel}:{name}": figure[kernel] for name, figure in figures.items()
            for kernel in ("base", "series") if figure[kernel] is not None}


def missing(expression, values):
    return [t.group() for t in TERM.finditer(expression) if t.group() not in values]


def filled(expression, values):
    """The expression with numbers in place of figures; None if it is not one."""
    sides = TERM.sub(lambda term: repr(values[term.group()]), expression)
    return sides if re.fullmatch(f"{SUM}(<={SUM})?", sides) else None


def text(value):
    if value is None:
        return "-"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}".rstrip("0").rstrip(".")


def params(name):
    """The parameters among the words of a figure's name."""
    return dict(word.split("=", 1) for word in name.split("/") if "=" in word)


def solve(matrix, vector):
    """Gauss, with the largest pivot; None if there is no single solution."""
    size = len(vector)
    rows = [[*row, value] for row, value in zip(matrix, vector)]
    for i in range(size):
        best = max(range(i, size), key=lambda r: abs(rows[r][i]))
        rows[i], rows[best] = rows[best], rows[i]
        if abs(rows[i][i]) < 1e-12:
            return None
        for r in range(size):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][size] / rows[i][i] for i in range(size)]


# What a cost over c CPUs and n nodes may be the sum of.
TERMS = {"1": lambda c, n: 1, "c": lambda c, n: c, "n": lambda c, n: n,
         "n*c": lambda c, n: n * c, "n*n": lambda c, n: n * n,
         "n*n*c": lambda c, n: n * n * c,
         # Threads on the first node, when one CPU more has the reader.
         "l": lambda c, n: -(-(c + 1) // n)}


def predict(terms, factors, c, n):
    return sum(f * TERMS[t](c, n) for t, f in zip(terms, factors))


def fit(terms, points):
    """Factors of TERMS with the least squares of relative errors; points are
    (cpus, nodes, cost)."""
    rows = [[TERMS[t](c, n) / (y or 1) for t in terms] for c, n, y in points]
    ones = [1 if y else 0 for _, _, y in points]
    square = [[sum(row[i] * row[j] for row in rows) for j in range(len(terms))]
              for i in range(len(terms))]
    return solve(square, [sum(row[i] * y for row, y in zip(rows, ones))
                          for i in range(len(terms))])


def worst(terms, factors, points):
    """The largest relative error of a fit."""
    return max(abs(predict(terms, factors, c, n) - y) / (y or 1) for c, n, y in points)
