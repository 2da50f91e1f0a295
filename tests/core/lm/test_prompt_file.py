"""Prompt files are read, or refused with one error message."""

from __future__ import annotations

import csv
import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.config import LanguageTask
from grpo_core.errors import GrpoError
from grpo_core.lm import prompt_file
from grpo_core.lm.kept_prompts import prompts_of
from grpo_core.lm.problems import Prompt
from grpo_core.lm.prompt_file import LARGEST, read_prompts
from grpo_core.lm.vocabulary import encode

HEAD = "prompt,answer\n"
LINE = '{"prompt": "1+1=", "answer": %s}\n'
BAD: dict[str, tuple[str, str, str, str]] = {
    "nothing at all": (".jsonl", "number", "", "mine.jsonl contains no prompts"),
    "no names of columns": (".csv", "number", "", "has no column names in its first line; it needs a column"),
    "only names of columns": (".csv", "number", HEAD, "mine.csv contains no prompts"),
    "no column of answers": (".csv", "number", "question,reply\n", "question, reply; it needs .* and one of answers"),
    "blank lines": (".jsonl", "number", "\n  \n", "mine.jsonl contains no prompts"),
    "one column": (".csv", "number", "prompt\n1+1=\n", "has the columns prompt; it needs a column of prompts"),
    "semicolons": (".csv", "number", "prompt;answer\n1+1=;2\n", "columns prompt;answer; it needs"),
    "a quote left open": (".csv", "number", HEAD + '"1+1=,2\n', "Line 2 of mine.csv is not CSV"),
    "a huge cell": (".csv", "number", HEAD + "1" * 200_000 + ",2\n", "Line 2 of mine.csv is not CSV"),
    "ragged": (".csv", "number", HEAD + "1+1=,2\n1+2=\n", "Line 3 of mine.csv has no answer"),
    "only spaces": (".csv", "number", HEAD + "  ,2\n", "Line 2 of mine.csv has no prompt"),
    "not JSON": (".jsonl", "number", LINE % "2" + "{nope\n", "Line 2 of mine.jsonl is not JSON"),
    "deep JSON": (".jsonl", "number", "[" * 100_000, "Line 1 of mine.jsonl is not JSON"),
    "a list": (".jsonl", "number", '["1+1=", 2]\n', "Row 1 of mine.jsonl is not an object"),
    "no answer": (".jsonl", "number", '{"prompt": "1+1="}\n', "Line 1 of mine.jsonl has no answer"),
    "null": (".jsonl", "number", LINE % "null", "Line 1 of mine.jsonl has no answer"),
    "true": (".jsonl", "number", LINE % "true", "Line 1 of mine.jsonl has no answer"),
    "nested": (".jsonl", "number", LINE % "[2]", "Line 1 of mine.jsonl has no answer"),
    "foreign": (".jsonl", "number", "\n" + LINE.replace("+", "/") % "2", "Line 2 of .*does not know “/” .character 2"),
    "too long": (".csv", "number", HEAD + "1+" * 20 + "1=,21\n", "Line 2 .* has 42 characters; .* room for 40"),
    "no number": (".csv", "number", HEAD + "1+1=,2,\n1+2=,three\n", "Line 3 .*“three” is not a number"),
    "bad expression": (".csv", "regex", HEAD + "1+1=,(2\n", "Line 2 .* not a regular expression .*unterminated"),
    "a count too large": (".csv", "regex", HEAD + "1+1=,a{99999999999}\n", "Line 2 .* not a regular expression"),
    "too deep": (".csv", "regex", HEAD + "1+1=," + "(" * 5000 + ")" * 5000, "Line 2 .* not a regular expression"),
}


def read(path: Path, checker: str = "number") -> list[Prompt]:
    return list(read_prompts(path, checker=checker, longest=40))


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_in_one_sentence_with_its_line(tmp_path: Path, name: str) -> None:
    ending, checker, text, said = BAD[name]
    path = tmp_path / f"mine{ending}"
    path.write_text(text, encoding="utf-8")
    csv.field_size_limit(1 << 26)  # as after a table of completions
    with pytest.raises(GrpoError, match=said) as refused:
        read(path, checker)
    message = str(refused.value)
    assert message.endswith(".") and "\n" not in message and len(message) < 400
    assert refused.value.__suppress_context__ or refused.value.__context__ is None, "no traceback of the machinery"


def test_a_file_that_is_far_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(GrpoError, match="is larger than 50 MB"):
        read(path)


@pytest.mark.parametrize("name", ["", ".", "none.csv", "a\0b.csv", "~nobody-of-this-name/mine.csv", "x" * 5000])
def test_a_path_that_leads_to_no_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GrpoError, match=r"cannot be read: .*\. Choose a CSV, JSON, JSONL or Parquet file\.$"):
        read(Path(name))


def test_a_file_in_another_encoding_is_told(tmp_path: Path) -> None:
    for encoding in ("utf-16", "latin-1"):
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes(f"{HEAD}1+1=,2,ü\n".encode(encoding))
        with pytest.raises(GrpoError, match="is not UTF-8"):
            read(path)


def test_columns_stand_in_any_order_and_cells_are_stripped(tmp_path: Path) -> None:
    table, lines = tmp_path / "mine.CSV", tmp_path / "mine.ndjson"
    table.write_bytes(b"\xef\xbb\xbfanswer,note,prompt\r\n 2 ,x,1+1= \r\n\r\n6,y,2*3=\r\n")
    lines.write_text('{"answer": 2.5, "prompt": "1+1.5="}\n{"prompt": 7, "answer": -3}\n')
    assert read(table) == [Prompt("1+1=", "2"), Prompt("2*3=", "6")]
    assert read(lines) == [Prompt("1+1.5=", "2.5"), Prompt("7", "-3")]


SYSTEM, USER = {"role": "system", "content": "Reason."}, {"role": "user", "content": "1+1="}
PUBLISHED: dict[str, tuple[str, object, str, str]] = {
    "GSM8K": (".jsonl", {"question": "1+1=", "answer": "1 and 1 are <<1+1=2>>2.\n#### 2,125"}, "number", "2125"),
    "MATH": (".jsonl", {"problem": "1+1=", "solution": "So $\\boxed{\\frac{1}{2}}$."}, "exact", "\\frac{1}{2}"),
    "OpenR1": (".json", [{"problem": "1+1=", "solution": "Long.\nWork.", "answer": "A"}], "exact", "A"),
    "MetaMath": (".json", [{"query": "1+1=", "response": "It is so.\n#### 2\nThe answer is: 2"}], "number", "2"),
    "SVAMP": (".json", [{"Body": "1+", "Question": "1=", "Answer": 2.0}], "number", "2.0"),
    "ASDiv": (".csv", "body,question,answer\n1+,1=,2 (apples)\n", "number", "2"),
    "ORZ": (".json", [{"prompt": [{"from": "user", "value": "1+1="}], "final_answer": "2"}], "exact", "2"),
    "AQuA": (".json", {"question": "1+1=", "options": ["A)1", "B)2"], "correct": "B"}, "exact", "B"),
    "MMLU": (".json", [{"question": "1+1=", "choices": ["1", "2"], "answer": 1}], "exact", "B"),
    "OlympiadBench": (".jsonl", {"question": "1+1=", "context": None, "final_answer": ["2"]}, "exact", "2"),
    "messages": (".jsonl", {"messages": [USER, {"role": "assistant", "content": "Answer: 2"}]}, "exact", "2"),
    "DAPO": (".jsonl", {"prompt": [SYSTEM, USER], "reward_model": {"ground_truth": "2"}}, "exact", "2"),
}
"""Name of a published set -> ending of a file in its form, the file or the row in it, a checker, and the answer."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_prompts_are_read_as_published(tmp_path: Path, name: str) -> None:
    ending, content, checker, answer = PUBLISHED[name]
    path = tmp_path / f"set{ending}"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    (prompt,) = read_prompts(path, checker=checker, longest=None)
    first, *choices = prompt.text.split("\n") if name in ("AQuA", "MMLU") else [prompt.text.replace("\n", "")]
    assert (first, prompt.answer, prompt.system) == ("1+1=", answer, "Reason." if name == "DAPO" else "")
    assert [choice[0] for choice in choices] == (["A", "B"] if name in ("AQuA", "MMLU") else [])


@pytest.mark.parametrize("prompt", ["two\nlines", "a\u2028separator", "a\x85mark"])
def test_line_breaks_within_a_prompt_are_kept(tmp_path: Path, prompt: str) -> None:
    table, lines = tmp_path / "mine.csv", tmp_path / "mine.jsonl"
    table.write_text(f'{HEAD}"{prompt}",2\n1+1=,2\n', encoding="utf-8")
    lines.write_text(json.dumps({"prompt": prompt, "answer": "2"}, ensure_ascii=False) + "\n", encoding="utf-8")
    for path in (table, lines):
        assert read_prompts(path, checker="number", longest=None)[0].text == prompt


@pytest.mark.needs_part("trainers")
def test_prompts_in_parquet_are_read_in_a_process_of_their_own(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, row = tmp_path / "train.parquet", {" Prompt": [SYSTEM, USER], "Reward model": {"ground_truth": "2"}}
    odd = {" Prompt": [USER], "Reward model": {"ground_truth": None}}
    rows = [*(row | {" Prompt": [SYSTEM, {"role": "user", "content": f"{n}+1="}]} for n in range(20)), odd]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    task = LanguageTask(problem="own", file=str(path), checker="exact")
    kept = prompts_of(task, None)
    assert list(kept) == [Prompt(f"{n}+1=", "2", "Reason.") for n in range(20)] == kept[:]
    assert kept.left_out.startswith("1 of 21 prompts cannot be used. Row 21 of train.parquet has no answer")
    parquet.write_table(pyarrow.table({"nums": [1], "target": [2]}), path)
    with pytest.raises(GrpoError, match=r"has the columns nums, target; it needs a column of prompts"):
        prompts_of(task, None)
    path.write_bytes(b"PAR1")
    with pytest.raises(GrpoError, match=r"train\.parquet cannot be read as Parquet"):
        prompts_of(task, None)


def test_a_pointer_of_git_lfs_is_called_one(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5620\n")
    with pytest.raises(GrpoError, match="pointer of Git LFS"):
        read(path)


CELL = st.text(alphabet='0123456789+-*=(). ?,"\n\r\t;x(){}[]|\\^$é\u2028\0', max_size=12)
VALUE: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | CELL, lambda inner: st.lists(inner, max_size=2)
)


@settings(max_examples=150, deadline=None)
@given(content=st.binary(max_size=200), ending=st.sampled_from([".csv", ".jsonl"]), head=st.booleans())
def test_of_any_bytes_come_prompts_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, ending: str, head: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / f"bytes{ending}"
    path.write_bytes(HEAD.encode() * head + content)
    with suppress(GrpoError):
        assert read(path, "regex")


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of regular expressions that another Python would read otherwise
@settings(max_examples=150, deadline=None)
@given(rows=st.lists(st.lists(CELL, max_size=3), max_size=4), checker=st.sampled_from(["exact", "number", "regex"]))
def test_of_any_table_come_usable_prompts_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], checker: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_text(HEAD + "\n".join(",".join(row) for row in rows), encoding="utf-8", newline="")
    with suppress(GrpoError):
        usable(read(path, checker), checker)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.fixed_dictionaries({}, optional={"prompt": VALUE, "answer": VALUE}), max_size=3),
    checker=st.sampled_from(["exact", "number", "regex"]),
)
def test_of_any_lines_of_json_come_usable_prompts_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]], checker: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with suppress(GrpoError):
        usable(read(path, checker), checker)


def usable(prompts: list[Prompt], checker: str) -> None:
    """Assert that the prompts read can be used and their answers checked."""
    assert prompts
    for prompt in prompts:
        assert 0 < len(encode(prompt.text)) <= 40
        assert prompt.answer
        if checker == "number":
            float(prompt.answer)
        if checker == "regex":
            re.compile(prompt.answer)


def test_a_file_of_many_pieces_is_cut_into_the_same_lines_and_says_the_right_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.csv"
    rows = [f'{number}+1=,"{number + 1}"' for number in range(200)]
    for end in ("\n", "\r\n", "\r"):
        path.write_bytes(end.join(["prompt,answer", *rows]).encode())
        whole = read(path)
        with monkeypatch.context() as patch:
            patch.setattr(prompt_file, "PIECE", 7)
            assert read(path) == whole == [Prompt(f"{number}+1=", str(number + 1)) for number in range(200)]
            path.write_bytes(end.join(["prompt,answer", *rows, "1/1=,1"]).encode())
            read_all = read_prompts(path, checker="number", longest=40)
            assert len(read_all) == 200
            assert re.match(r"1 of 201 prompts cannot be used\. Line 202 of mine\.csv.*\.$", read_all.left_out)


def test_kept_prompts_are_a_list_of_prompts_of_which_each_text_is_there_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("prompt,answer\n1+1=,2\n1+2=,3\n1+1=,4\n")
    kept = prompts_of(LanguageTask(problem="own", file=str(path), checker="exact"), 64)
    assert list(kept) == [Prompt("1+1=", "4"), Prompt("1+2=", "3")] == kept[:]
    assert kept[1:] == [Prompt("1+2=", "3")] and kept.find("1+2=") == kept[1] and kept.find("2+2=") is None
