"""Where rows of SWE-bench come from: task repositories, files, and the Hugging Face hub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from retrial.benchmarks.swebench.rows import Origin, claims, digest, read
from retrial.errors import UsageError
from tests.conftest import PROJECT
from tests.support.swebench_sources import TWO, a_jsonl, a_repository, a_row, a_task, complaint, ids, rows_of

# Task repositories.


def test_a_task_repository_is_filtered_by_data_set_and_split(tmp_path: Path) -> None:
    a_task(tmp_path, a_row(1), datasets=("our/All", "our/Lite"))
    a_task(tmp_path, a_row(2))
    a_task(tmp_path, a_row(3), split="dev", datasets=("our/All", "our/Lite"))
    a_task(tmp_path, a_row(4), split="deprecated")
    a_task(tmp_path, a_row(5), datasets=("our/Secret",))
    a_task(tmp_path, a_row(6, image="our/Lite:test"))
    assert ids(tmp_path, dataset="our/Lite") == ["ours__tiny-1"]
    assert ids(tmp_path, dataset="our/Lite", split="dev") == ["ours__tiny-3"]
    assert ids(tmp_path) == ["ours__tiny-1", "ours__tiny-2", "ours__tiny-6"]


def test_what_a_task_repository_does_not_publish_is_refused_with_what_it_does(tmp_path: Path) -> None:
    a_repository(tmp_path, TWO)
    assert "no data set 'our/Lit'; it has: our/All, our/Lite." in complaint(tmp_path, dataset="our/Lit")
    assert "no split 'train'; it has: test, dev." in complaint(tmp_path, split="train")
    assert "holds no task of our/Lite, split dev." in complaint(tmp_path, dataset="our/Lite", split="dev")


def test_answers_of_a_task_repository_are_read_only_when_asked_for(tmp_path: Path) -> None:
    folder = a_task(tmp_path, a_row())
    (row,) = read(Origin(where=str(tmp_path)))
    (folder / "gold.patch").write_text("later")
    (folder / "tests.json").write_text('{"FAIL_TO_PASS": ["later"], "PASS_TO_PASS": []}')
    secrets = row.secrets()
    assert (secrets.patch, secrets.fail_to_pass, secrets.pass_to_pass) == ("later", ("later",), ())


def test_the_task_folder_is_the_recipe_if_it_has_a_dockerfile(tmp_path: Path) -> None:
    folder = a_task(tmp_path, a_row(1))
    (a_task(tmp_path, a_row(2)) / "Dockerfile").unlink()
    assert [row.recipe for row in read(Origin(where=str(tmp_path)))] == [str(folder), ""]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("task.yaml", "split: test\ndatasets: [our/All]\na: [", "task.yaml is not YAML"),
        ("task.yaml", "- test our/All", "task.yaml must hold keys and values"),
        ("task.yaml", "split: test\ndatasets: [our/All]\ninstance_id: other", "must have the folder's name"),
        ("task.yaml", "split: test\ndatasets: [our/All]\ninstance_id: ours__tiny-1", "ours__tiny-1 lacks repo."),
        ("eval.sh", None, "ours__tiny-1 lacks eval.sh."),
        ("problem_statement.md", b"\xff", "problem_statement.md is not UTF-8 (byte 0)"),
    ],
)
def test_a_broken_task_folder_is_refused_by_name(
    tmp_path: Path, name: str, content: str | bytes | None, expected: str
) -> None:
    file = a_task(tmp_path, a_row()) / name
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = complaint(tmp_path)
    assert expected in said and str(file.parent) in said


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("tests.json", b"{", "tests.json is not JSON"),
        ("tests.json", b"[]", "tests.json must hold an object"),
        ("tests.json", b"{}", "lacks FAIL_TO_PASS"),
        ("gold.patch", b"\xff", "gold.patch is not UTF-8"),
        ("eval.sh", b"pytest\n", "has an eval_script without a test command"),
    ],
)
def test_a_broken_answer_is_refused_when_it_is_asked_for(
    tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    (a_task(tmp_path, a_row()) / name).write_bytes(content)
    rows = read(Origin(where=str(tmp_path)))
    for ask in (rows[0].secrets, lambda: digest(rows)):
        with pytest.raises(UsageError) as caught:
            ask()
        assert expected in str(caught.value) and "ours__tiny-1" in str(caught.value)


@pytest.mark.parametrize("content", ["", "datasets: []", "datasets: {", "splits: [test]", "- our/All"])
def test_a_description_without_data_sets_is_refused(tmp_path: Path, content: str) -> None:
    a_task(tmp_path, a_row())
    (tmp_path / "sweb.yaml").write_text(content)
    assert "sweb.yaml" in complaint(tmp_path)


def test_a_task_repository_without_tasks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sweb.yaml").write_text("datasets: [our/All]")
    assert "no folder tasks" in complaint(tmp_path)


# Files.


def test_blank_lines_crlf_and_a_byte_order_mark_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\xef\xbb\xbf\r\n" + "\r\n\r\n".join(json.dumps(row) for row in TWO).encode())
    assert ids(path) == ["ours__tiny-1", "ours__tiny-2"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("rows.jsonl", b'{}\n{"a\n', "rows.jsonl:2 is not JSON"),
        ("rows.jsonl", b'{"a": "\xff"}', "rows.jsonl:1 is not JSON"),
        ("rows.jsonl", b"[" * 100_000, "rows.jsonl:1 is not JSON"),
        ("rows.jsonl", b"3", "rows.jsonl:1 must be an object"),
        ("rows.jsonl", b"", "rows.jsonl holds no task."),
        ("rows.json", b"[\n{]", "rows.json:2 is not JSON"),
        ("rows.json", b"3", "rows.json must hold a list of rows"),
        ("rows.json", b"[3]", "rows.json entry 1 must be an object"),
        ("rows.json", b'{"a": 3}', "rows.json entry 1 must be an object"),
        ("rows.parquet", b"PAR1", "rows.parquet is not a parquet file"),
        ("rows.csv", b"a,b", "cannot hold rows: expected one of .json, .jsonl, .parquet"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert expected in complaint(tmp_path / name)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for name in ("rows.json", "rows.jsonl", "rows.parquet"):
        assert complaint(tmp_path / name) == f"{tmp_path / name} cannot be read: No such file or directory."


# The hub.


def test_the_split_dev_of_a_hub_folder_is_found_by_its_name(tmp_path: Path) -> None:
    a_jsonl(tmp_path / "test.jsonl", rows_of({}))
    a_jsonl(tmp_path / "dev.jsonl", [a_row(7)])
    assert ids(tmp_path, split="dev") == ["ours__tiny-7"]


def test_bad_hub_folders_are_refused_in_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    a_jsonl(tmp_path / "good" / "test.jsonl", rows_of({}))
    said = complaint(tmp_path / "good", split="nightly")
    assert "(split nightly) cannot be loaded" in said and "'test'" in said
    for name in ("test.jsonl", "test.parquet"):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / name).write_text("{]\n")
        said = complaint(folder)
        assert "cannot be loaded" in said and "\n" not in said
    assert capfd.readouterr() == ("", "")


def test_a_folder_that_is_no_data_set_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "python" / "exercises" / "practice").mkdir(parents=True)
    (tmp_path / "README.md").write_text("# Exercises\n\nconfigs: none\n")
    (tmp_path / "config.json").write_text("{}")
    assert not claims(tmp_path)
    assert "is neither a task repository (sweb.yaml) nor in the layout of the hub" in complaint(tmp_path)


def test_a_path_that_is_not_there_is_not_asked_of_the_hub(tmp_path: Path) -> None:
    for where in (str(tmp_path / "absent"), "./absent", "a/b/c", "two words"):
        assert "is not there, and cannot be the id of a data set" in complaint(where)


def test_only_files_that_can_hold_rows_are_claimed(tmp_path: Path) -> None:
    for name, expected in (("a.json", True), ("a.JSONL", True), ("a.parquet", True), ("a.csv", False), ("a", False)):
        (tmp_path / name).write_text("")
        assert claims(tmp_path / name) is expected
    assert not claims(tmp_path / "absent.json")
    assert not claims(Path("x" * 300))


def in_another_process(code: str, *options: str, **variables: str) -> str:
    """What it prints; settings of the hub's packages are read when they are imported."""
    environment = {"PATH": os.defpath, "PYTHONPATH": str(PROJECT), **variables}
    start = "import sys\nfrom retrial.benchmarks.swebench.rows import Origin, UsageError, read\n"
    done = subprocess.run(
        [sys.executable, *options, "-c", start + code], capture_output=True, text=True, env=environment, check=True
    )
    return done.stdout


ASK = "try:\n    read(Origin(where='our-own/nothing'))\nexcept UsageError as error:\n    print(error)\n"


class Nothing(BaseHTTPRequestHandler):
    """A hub that has nothing."""

    def do_HEAD(self) -> None:
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_an_id_that_the_hub_does_not_know_is_one_sentence(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Nothing) as server:
        Thread(target=server.serve_forever).start()
        said = in_another_process(
            ASK, HF_ENDPOINT=f"http://127.0.0.1:{server.server_port}", HF_HOME=str(tmp_path), HOME=str(tmp_path)
        )
        server.shutdown()
    assert said.startswith("The data set 'our-own/nothing' (split test) cannot be loaded: Dataset 'our-own/nothing'")
    assert "doesn't exist" in said and said.count("\n") == 1


def test_without_a_network_the_hub_is_one_sentence(tmp_path: Path) -> None:
    said = in_another_process(ASK, HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path), HOME=str(tmp_path))
    assert "cannot be loaded: Couldn't reach 'our-own/nothing'" in said and said.count("\n") == 1


def test_without_the_packages_it_is_said_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"")
    # Without `site` there are no packages but those of Python itself.
    assert "needs the package datasets: install" in in_another_process(ASK, "-S")
    asked = ASK.replace("our-own/nothing", str(tmp_path / "rows.parquet"))
    assert "needs the package pyarrow, which comes with datasets: install" in in_another_process(asked, "-S")


def test_rows_of_files_and_task_repositories_need_no_heavy_package(tmp_path: Path) -> None:
    jsonl = a_jsonl(tmp_path / "rows.jsonl", TWO)
    root = a_repository(tmp_path / "repository", TWO)
    code = (
        f"print(len(read(Origin(where={str(jsonl)!r}))), 'yaml' in sys.modules)\n"
        f"print(len(read(Origin(where={str(root)!r}))))\n"
        "print(sorted({'datasets', 'pyarrow', 'huggingface_hub', 'pandas'} & set(sys.modules)))"
    )
    assert in_another_process(code).split("\n")[:3] == ["2 False", "2", "[]"]
