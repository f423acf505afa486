"""Data sets from ARFF files, from a stand-in for OpenML, and the errors on the way."""

import email.message
import gzip
import hashlib
import io
import json
import sys
import time
import urllib.request
import urllib.response
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest

from caltree.paper import datasets, published
from caltree.paper.datasets import NAMES, load
from tests.support import fixtures as fixture_files

pytest.importorskip("arff", reason="liac-arff reads the files")

SHARED = fixture_files.ROOT.parent / "shared" / "datasets"

VOTE = """\
% a comment
@RELATION 'two lines of vote'
@ATTRIBUTE 'water project'\t{ 'it\\'s', "y,n", Zürich , '?x', never}
@attribute age REAL
@attribute Class {republican,democrat,other}
@DATA
% another
'it\\'s', 1.5, democrat
"y,n",?,republican
Zürich,-3e2,democrat
?,3,?
'?x',0,republican
"""


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path

    return write


def test_what_a_file_says_is_what_a_data_set_has(write):
    data = load("vote", write("vote.arff", VOTE))
    assert data.name == "vote"
    assert list(data.X.columns) == ["water project", "age"]
    categories = ["it's", "y,n", "Zürich", "?x", "never"]
    expected = pd.DataFrame(
        {
            "water project": pd.Categorical(["it's", "y,n", "Zürich", "?x"], categories),
            "age": [1.5, np.nan, -300.0, 0.0],
        }
    )
    pd.testing.assert_frame_equal(data.X, expected)
    assert data.y.tolist() == ["democrat", "republican", "democrat", "republican"]
    assert data.y.dtype.kind == "U"
    # As declared and not as sorted, and without the class that has no rows.
    assert data.classes == ("republican", "democrat")
    assert data.notes == (
        "Rows without a class, which are left out: 1.",
        "4 rows; the paper has 435.",
        "2 attributes; the paper has 16.",
    )


def test_a_missing_value_of_a_nominal_attribute_is_missing(write):
    data = load("vote", write("vote.arff", VOTE.replace("?,3,?", "?,3,democrat")))
    assert data.X["water project"].isna().tolist() == [False, False, False, True, False]
    assert len(data.y) == 5


def test_a_compressed_file_is_the_same(tmp_path):
    (tmp_path / "vote.arff.gz").write_bytes(gzip.compress(VOTE.encode()))
    data = load("vote", str(tmp_path))
    assert data.X["water project"].tolist() == ["it's", "y,n", "Zürich", "?x"]
    assert data.y.tolist() == ["democrat", "republican", "democrat", "republican"]


def relation(*lines):
    return "\n".join(["@relation r", *lines, ""])


def test_columns_that_identify_rows_are_dropped_and_a_number_becomes_two_classes(write):
    text = relation(
        "@attribute url string",
        "@attribute words numeric",
        "@attribute shares numeric",
        "@data",
        "'http://a', 7, 1399",
        "'http://b', 8, 1400",
        "'http://c', 9, ?",
        "'http://d', 10, 80000",
    )
    data = load("news-popularity", write("news-popularity.arff", text))
    assert data.X.to_dict("list") == {"words": [7.0, 8.0, 10.0]}
    assert data.y.tolist() == ["<1400", ">=1400", ">=1400"]
    assert data.classes == ("<1400", ">=1400")


def test_the_class_may_be_known_by_its_name(write):
    text = relation(
        "@attribute Class {b,a}", "@attribute X0 numeric", "@attribute X1 numeric", "@data"
    )
    text += "a,1,2\nb,3,4\n"
    data = load("hand-postures", write("hand-postures.arff", text))
    assert (list(data.X.columns), data.y.tolist()) == (["X0", "X1"], ["a", "b"])
    data = load("hand-postures", write("hand-postures.arff", text.replace("Class", "Posture")))
    assert (list(data.X.columns), data.y.tolist()) == (["Posture", "X0"], ["2", "4"])


def test_a_class_of_whole_numbers_is_nominal_in_ascending_order(write):
    text = relation("@attribute a numeric", "@attribute y integer", "@data")
    data = load("yeast", write("yeast.arff", text + "0,10\n0,-1\n0,2\n0,?\n0,10\n"))
    assert data.classes == ("-1", "2", "10")
    assert data.y.tolist() == ["10", "-1", "2", "10"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["@attribute a numeric", "@data", "1"], "has 1 columns; it needs attributes and a class"),
        (
            ["@attribute a string", "@attribute y {u,v}", "@data", "x,u"],
            "attribute 'a' of type STRING; make it numeric or nominal",
        ),
        (
            ["@attribute a real", "@attribute y {u,v}", "@data", "1,u", "2,u", "3,?"],
            r"has the labels \['u'\] in 'y'; it needs at least 2 classes",
        ),
        (["@attribute a real", "@attribute y {u,v}", "@data"], r"has the labels \[\] in 'y'"),
        (
            ["@attribute a real", "@attribute y real", "@data", "1,0.5", "2,1"],
            "numeric attribute 'y' as its class, with 2 values",
        ),
        (
            ["@attribute a real", "@attribute y real", "@data", *(f"1,{i}" for i in range(51))],
            "numeric attribute 'y' as its class, with 51 values",
        ),
        (["@attribute a real", "@data", "1,u"], "cannot be read as ARFF: .*line 4"),
        (["@attribute a {u}", "@attribute y {u,v}", "@data", "w,u"], "as ARFF: .*w not found"),
    ],
)
def test_unusable_files_are_refused(write, lines, message):
    with pytest.raises(ValueError, match=f"yeast.arff.*{message}"):
        load("yeast", write("yeast.arff", relation(*lines)))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("yeast.arff.gz", b"no gzip"),
        ("yeast.arff.gz", gzip.compress(b"@relation r" * 99, mtime=0)[:-9]),
        ("yeast.arff", "@relation Zürich".encode("latin-1")),
    ],
)
def test_files_that_are_broken_or_not_in_utf_8_are_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name} cannot be read as ARFF: "):
        load("yeast", tmp_path)


def test_a_missing_file_is_named_with_its_remedy(tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"{tmp_path}/yeast\.arff nor .*\.gz; leave data"):
        load("yeast", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"hand-postures\.arff.*download MoCap Hand"):
        load("hand-postures", tmp_path)


def test_led24_is_generated_unless_there_is_a_file(tmp_path, write):
    generated = load("led24")
    assert generated.X.shape == (5000, 24)
    assert generated.notes == ("The rows are generated; those of the paper were others.",)
    pd.testing.assert_frame_equal(load("led24", tmp_path).X, generated.X)
    text = relation("@attribute a {0,1}", "@attribute y {0,1}", "@data", "0,1", "1,0")
    assert load("led24", write("led24.arff", text)).X.shape == (2, 1)


def test_a_file_that_is_none_of_the_paper_is_read_as_it_is(write, tmp_path):
    text = relation("@attribute id numeric", "@attribute state {on,off,lost}", "@data")
    data = load("mozilla", write("mozilla.arff", text + "1,off\n2,on\n3,off\n"))
    assert (data.name, data.classes, data.notes) == ("mozilla", ("on", "off"), ())
    assert data.X.to_dict("list") == {"id": [1.0, 2.0, 3.0]}
    with pytest.raises(FileNotFoundError, match=rf"neither {tmp_path}/iris.arff nor iris.arff.gz$"):
        load("iris", tmp_path)
    with pytest.raises(FileNotFoundError, match="missing data sets: iris, cmc; of the first: "):
        datasets.check_available(["iris", "mozilla", "cmc"], tmp_path)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"name must be one of 'audiology', .* got 'iris'"):
        load("iris")


@pytest.mark.parametrize(("module", "package"), [("pandas", "pandas"), ("arff", "liac-arff")])
def test_what_is_not_installed_is_named(write, monkeypatch, module, package):
    folder = write("vote.arff", VOTE)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"need {package}: pip install caltree\[paper\]"):
        load("vote", folder)


def test_every_data_set_of_the_paper_has_one_source():
    assert set(datasets._SOURCES) == set(published.sizes()) == set(NAMES)
    numbers = [source.openml for source in datasets._SOURCES.values() if source.openml]
    assert len(set(numbers)) == len(numbers) == 28
    for name, source in datasets._SOURCES.items():
        assert (source.openml is not None) == bool(source.openml_name)
        assert (source.openml is None) == bool(source.uci or name == "led24")


class OpenML(urllib.request.HTTPSHandler):
    """Answers as OpenML's API does, for one data set."""

    def __init__(self, number, name, arff, target, columns):
        super().__init__()
        address = f"https://api.openml.org/data/v1/download/{number}/{name}.arff"
        description = {
            "name": name,
            "format": "ARFF",
            "description": "",
            "status": "active",
            "url": address,
            "md5_checksum": hashlib.md5(arff.encode()).hexdigest(),
            "default_target_attribute": target,
        }
        features = [
            {
                "index": str(index),
                "name": column,
                "data_type": kind,
                "is_target": str(column == target).lower(),
                "is_ignore": "false",
                "is_row_identifier": str(column == "id").lower(),
                "number_of_missing_values": "0",
            }
            for index, (column, kind) in enumerate(columns.items())
        ]
        rows = [line for line in arff.partition("@data\n")[2].splitlines() if line]
        qualities = [{"name": "NumberOfInstances", "value": f"{len(rows)}.0"}]
        api = "/api/v1/json/data"
        self.answers = {
            f"{api}/{number}": json.dumps({"data_set_description": description}),
            f"{api}/features/{number}": json.dumps({"data_features": {"feature": features}}),
            f"{api}/qualities/{number}": json.dumps({"data_qualities": {"quality": qualities}}),
            urlsplit(address).path: arff,
        }
        self.asked = 0

    def https_open(self, request):
        self.asked += 1
        headers = email.message.Message()
        body = io.BytesIO(self.answers[urlsplit(request.full_url).path].encode())
        response = urllib.response.addinfourl(body, headers, request.full_url, 200)
        response.msg = "OK"
        return response


@pytest.fixture
def network(tmp_path, monkeypatch):
    """Put a handler in the place of the network, and an empty folder in that of the cache."""
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)

    def install(handler):
        urllib.request.install_opener(urllib.request.build_opener(handler))
        return handler

    yield install
    urllib.request.install_opener(None)


def test_openml_gives_declared_categories_and_no_identifiers(network):
    columns = {"id": "nominal", "colour": "nominal", "class": "nominal", "mass": "numeric"}
    text = relation(
        "@attribute id {p1,p2,p3}",
        "@attribute colour {red,green,blue}",
        "@attribute class {tested_positive,tested_negative}",
        "@attribute mass real",
        "@data",
        "p1,blue,tested_negative,1.5",
        "p2,?,tested_positive,?",
        "p3,red,tested_negative,-2",
    )
    openml = network(OpenML(37, "diabetes", text, "class", columns))
    data = load("pima-diabetes")
    expected = pd.DataFrame(
        {
            "colour": pd.Categorical(["blue", None, "red"], ["red", "green", "blue"]),
            "mass": [1.5, np.nan, -2.0],
        }
    )
    pd.testing.assert_frame_equal(data.X, expected)
    assert data.y.tolist() == ["tested_negative", "tested_positive", "tested_negative"]
    assert data.classes == ("tested_positive", "tested_negative")
    assert data.notes == ("3 rows; the paper has 768.", "2 attributes; the paper has 8.")
    assert openml.asked == 4


def test_openml_is_asked_once(network):
    text = relation("@attribute mass real", "@attribute class {u,v}", "@data", "1,u", "2,v", "3,u")
    openml = network(OpenML(181, "yeast", text, "class", {"mass": "numeric", "class": "nominal"}))
    first = load("yeast")
    assert openml.asked == 4
    pd.testing.assert_frame_equal(load("yeast").X, first.X)
    assert openml.asked == 4


def test_openml_numbers_become_classes_and_identifiers_are_dropped(network):
    text = relation(
        "@attribute url {a,b}",
        "@attribute words real",
        "@attribute shares real",
        "@data",
        "a,1,100",
        "b,2,2000",
    )
    columns = {"url": "nominal", "words": "numeric", "shares": "numeric"}
    network(OpenML(42724, "OnlineNewsPopularity", text, "shares", columns))
    data = load("news-popularity")
    assert data.X.to_dict("list") == {"words": [1.0, 2.0]}
    assert data.y.tolist() == ["<1400", ">=1400"]


@pytest.mark.parametrize(
    ("name", "target", "columns", "message"),
    [
        ("iris", "class", {}, "it is 'iris' instead of 'yeast'"),
        ("yeast", "label", {}, "its class, label, is not among its columns"),
        ("yeast", "class", {"mass": "string"}, "STRING attributes are not supported"),
    ],
)
def test_openml_data_sets_that_cannot_serve_are_refused(network, name, target, columns, message):
    text = relation("@attribute mass real", "@attribute class {u,v}", "@data", "1,u", "2,v")
    columns = {"mass": "numeric", "class": "nominal"} | columns
    network(OpenML(181, name, text, target, columns))
    with pytest.raises(ValueError, match=rf"set 181 cannot serve as yeast \({message}.*data_dir"):
        load("yeast")


@pytest.mark.parametrize(
    "failure",
    [
        URLError("Name or service not known"),
        TimeoutError("timed out"),
        ConnectionResetError("reset by peer"),
        HTTPError("https://www.openml.org", 503, "Service Unavailable", None, None),
    ],
)
def test_offline_is_one_line_with_its_remedy(network, failure):
    class Offline(urllib.request.HTTPSHandler):
        def https_open(self, request):
            raise failure

    network(Offline())
    with pytest.raises(ConnectionError) as raised:
        load("yeast")
    message = str(raised.value)
    assert message.startswith("yeast could not be fetched from OpenML (")
    assert message.endswith("check the network, or give a folder of ARFF files as data_dir")
    assert "\n" not in message


@pytest.mark.parametrize("name", ["bankruptcy", "colposcopy", "hand-postures"])
def test_what_is_not_on_openml_says_where_it_is(name):
    with pytest.raises(ValueError, match=rf"{name} is not on OpenML.*data_dir.*UCI.*{name}\.arff"):
        load(name)


# What the files of the shared folder are known to have otherwise than the paper.
KNOWN = {
    "audiology": ("69 attributes; the paper has 68.",),
    "cylinder-bands": ("540 rows; the paper has 512.",),
    "led24": ("The rows are generated; those of the paper were others.",),
    "news-popularity": ("39000 rows; the paper has 39644.",),
    "phishing": ("9 attributes; the paper has 10.",),
    "segment": ("19 attributes; the paper has 20.",),
    "vowel": ("13 attributes; the paper has 14.", "11 classes; the paper has 10."),
}
# Of numeric and nominal attributes, and of missing cells, where there are both or any.
MIXED = {
    "credit-rating": (6, 9, 67),
    "cylinder-bands": (18, 21, 999),
    "mice-protein": (77, 3, 1396),
    "sick": (7, 22, 6064),
    "taiwan-credit": (20, 3, 0),
    "bankruptcy": (64, 0, 9888),
    "audiology": (0, 69, 317),
    "vote": (0, 16, 392),
}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the data sets are not here")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "hand-postures"])
def test_shared_files(name):
    data = load(name, SHARED)
    assert data.notes == KNOWN.get(name, ())
    assert set(data.y) == set(data.classes)
    nominal = [isinstance(dtype, pd.CategoricalDtype) for dtype in data.X.dtypes]
    assert {dtype.kind for dtype in data.X.dtypes[np.logical_not(nominal)]} <= {"f"}
    n_missing = int(data.X.isna().to_numpy().sum())
    counts = (len(nominal) - sum(nominal), sum(nominal), n_missing)
    assert counts == MIXED.get(name, (*counts[:2], 0))
