"""Small data sets under the names of the paper's, as files."""

from dataclasses import replace

from caltree.paper.generators import rdg1


def write_data(folder, names=("vote", "sick"), n_rows=60):
    """ARFF files of two classes and a few nominal attributes, each name with its own rows."""
    folder.mkdir(exist_ok=True)
    for seed, name in enumerate(names):
        data = rdg1(n_rows, seed=seed)
        write_arff(folder / f"{name}.arff", replace(data, X=data.X.iloc[:, :3]))
    return folder


def write_arff(path, data):
    """A data set of nominal attributes as ARFF."""
    lines = ["@relation r"]
    for column in data.X:
        lines.append(f"@attribute {column} {{{','.join(data.X[column].cat.categories)}}}")
    lines += [f"@attribute class {{{','.join(data.classes)}}}", "@data"]
    for (_, row), label in zip(data.X.iterrows(), data.y, strict=True):
        lines.append(",".join([*row, label]))
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
