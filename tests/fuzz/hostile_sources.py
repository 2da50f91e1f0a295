"""Malicious recorded runs, built to bring a reader down: pipes, endless devices, absurd counts, files that expand."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.core.trainers.sources import DATA, source_path
from tests.core.trainers.trace_files import copied

Make = Callable[[Path], Path]
"""Function that creates a source in an empty folder."""
ENDLESS = ("pipe", "/dev/zero", "/dev/urandom", "/dev/full", "folder", "loop")
"""Things that can replace a file."""
NUMBERS: dict[str, Any] = {
    "10^9": 10**9,
    "-5": -5,
    "2^52": 2**52,
    "2^63": 2**63,
    "10^400": 10**400,
    "NaN": float("nan"),
    "infinite": float("inf"),
    "word": "many",
    "null": None,
    "list": [1] * 1000,
    "million": [1] * 1_000_000,
    "object": {},
    "true": True,
    "0.5": 0.5,
}
BAD_LINES = 15_000_000


def instead(path: Path, what: str) -> None:
    """Replace ``path`` by something that is not an ordinary file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "loop":
        path.symlink_to(path.name)
    else:
        path.symlink_to(what)


def trace_with(folder: Path, place: str, name: str, value: Any) -> Path:
    """Create a trace with a changed value in its description, its settings or its index."""
    trace = copied("grpo", folder)
    if place == "index":
        index = trace / "rank0" / "attempt0" / "index.jsonl"
        lines = [json.loads(line) for line in index.read_text().splitlines()]
        index.write_text("".join(json.dumps({**line, name: value}) + "\n" for line in lines))
        return trace
    description = json.loads((trace / "trace.json").read_text())
    (description if place == "trace" else description["settings"])[name] = value
    (trace / "trace.json").write_text(json.dumps(description))
    return trace


def trace_instead(folder: Path, file: str, what: str) -> Path:
    trace = copied("grpo", folder)
    instead(trace / file, what)
    return trace


def trace_file(folder: Path, file: str, content: bytes) -> Path:
    trace = copied("grpo", folder)
    (trace / file).write_bytes(content)
    return trace


def attempts(folder: Path, *names: str) -> Path:
    trace = copied("grpo", folder)
    for name in names:
        (trace / "rank0" / name).mkdir()
    return trace


def long_index(folder: Path, count: int) -> Path:
    trace = copied("grpo", folder)
    index = trace / "rank0" / "attempt0" / "index.jsonl"
    line = json.loads(index.read_text().splitlines()[0])
    head, tail = json.dumps({**line, "number": -1, "global_step": -2}).split("-1, ", 1)
    tail = tail.replace("-2", "{}", 1).replace("{}", "\0", 1)
    before, after = tail.split("\0")
    with index.open("w") as file:
        file.writelines(f"{head}{n}, {before}{2 * n}{after}\n" for n in range(1, count + 1))
    return trace


def parquet(folder: Path, make: Callable[[Path], object], name: str = "completions_00001.parquet") -> Path:
    make(folder / name)
    return folder


def step_parquet(folder: Path, make: Callable[[Path], object]) -> Path:
    trace = copied("grpo", folder)
    make(trace / "rank0" / "attempt0" / "step_00000002.parquet")
    return trace


def equal_rows(path: Path, count: int, text: str = "x") -> None:
    """Write a file of a few megabytes whose rows are all identical."""
    part = min(count, 1_000_000)
    indices = pa.array([0], pa.int32()).take(pa.array([0] * part, pa.int32()))
    words = pa.DictionaryArray.from_arrays(indices, pa.array([text]))
    numbers = pa.DictionaryArray.from_arrays(indices, pa.array([1.0]))
    table = pa.table({"prompt": words, "completion": words, "reward": numbers, "advantage": numbers})
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(count // part):
            writer.write_table(table, row_group_size=part)


def columns(path: Path, **data: Any) -> None:
    both: dict[str, Any] = {
        "prompt": pa.array(["p", "p"]),
        "completion": pa.array(["a", "b"]),
        "r": pa.array([1.0, 0.0]),
    }
    pq.write_table(pa.table({**both, **data}), path)


def nested(depth: int) -> Any:
    kind: Any = pa.int64()
    for _ in range(depth):
        kind = pa.list_(kind)
    return pa.nulls(2, kind)


def damaged(path: Path, begin: float, end: float, byte: int | None) -> None:
    """Overwrite a stretch of an intact file, or remove it if ``byte`` is None."""
    columns(path)
    content = path.read_bytes()
    first, last = int(begin * len(content)), int(end * len(content))
    path.write_bytes(content[:first] + (b"" if byte is None else bytes([byte]) * (last - first)) + content[last:])


def verl(folder: Path, *lines: bytes, name: str = "1.jsonl") -> Path:
    (folder / name).write_bytes(b"\n".join(lines) + b"\n")
    return folder


def row(**changes: Any) -> bytes:
    sound = {"input": "0+1=", "output": "1", "gts": "1", "score": 1.0, "step": 1, "uid": "0_0_0"}
    return json.dumps({**sound, **changes}).encode()


def many_files(folder: Path, pattern: str, count: int, content: bytes = b"") -> Path:
    for number in range(count):
        (folder / pattern.format(number)).write_bytes(content)
    return folder


def episodes(folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    file = folder / "traces.jsonl"
    lines = [json.loads(line) for line in (DATA / "verifiers" / "traces.jsonl").read_text("utf-8").splitlines()]
    for line in lines:
        change(line)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return file


def nodes(count: int, parent: Callable[[int], Any]) -> Callable[[dict[str, Any]], None]:
    def change(line: dict[str, Any]) -> None:
        for trace in line["traces"]:
            model = trace["nodes"][-1]
            trace["nodes"] = [{**model, "parent": parent(number)} for number in range(count)]

    return change


def of_run(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda line: line["run"]["work"].update(values)


def of_node(**values: Any) -> Callable[[dict[str, Any]], None]:
    def change(line: dict[str, Any]) -> None:
        for trace in line["traces"]:
            for node in trace["nodes"]:
                node.update(values)

    return change


MESSAGES: dict[str, Any] = {
    "no message": None,
    "a message of nobody": {"content": "a"},
    "a role of numbers": {"role": 7, "content": "a"},
    "deep content": {"role": "user", "content": [[[["a"]]]]},
    "content of anything": {"role": "user", "content": [{"type": "text", "text": 7}, None, 5, {"type": ["x"]}]},
    "calls of anything": {"role": "assistant", "tool_calls": [{"name": 7, "arguments": {"a": float("nan")}}]},
    "calls of no tool": {"role": "assistant", "tool_calls": [None, {"function": []}]},
    "a hundred thousand calls": {"role": "assistant", "tool_calls": [{"name": "a", "arguments": ""}] * 100_000},
}
"""Messages that no chat template accepts."""


def of_trace(**values: Any) -> Callable[[dict[str, Any]], None]:
    def change(line: dict[str, Any]) -> None:
        for trace in line["traces"]:
            trace.update(values)

    return change


def database(folder: Path, *statements: str, values: tuple[Any, ...] = ()) -> Path:
    path = source_path("trackio", folder)
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement, values if "?" in statement else ())
        connection.commit()
    return path


def many_rows(folder: Path, count: int, text: str = '{"train/loss": 1.0, "train/reward": 0.5}') -> Path:
    path = source_path("trackio", folder)
    with closing(sqlite3.connect(path)) as connection:
        run = connection.execute("SELECT run_id, run_name FROM metrics LIMIT 1").fetchone()
        names = "run_id, timestamp, run_name, step, metrics"
        connection.executemany(
            f"INSERT INTO metrics({names}) VALUES (?, '2026', ?, ?, ?)", ((*run, n, text) for n in range(count))
        )
        connection.commit()
    return path


def database_bytes(folder: Path, change: Callable[[bytes], bytes], ending: str = "") -> Path:
    path = source_path("trackio", folder)
    beside = path.with_name(path.name + ending)
    beside.write_bytes(change(path.read_bytes()))
    return path


def database_log(folder: Path, what: str) -> Path:
    path = source_path("trackio", folder)
    instead(path.with_name(path.name + "-wal"), what)
    return path


def one_file(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def one_instead(folder: Path, name: str, what: str) -> Path:
    instead(folder / name, what)
    return folder / name


def converted(folder: Path, key: str, value: Any) -> Path:
    from grpo_core.trainers.conversion import convert
    from grpo_core.trainers.importers import open_source

    path = folder / "run.grpo"
    convert(open_source(DATA / "verl"), path)
    with closing(sqlite3.connect(path)) as connection:
        facts = json.loads(connection.execute("SELECT value FROM meta WHERE key = 'recorded'").fetchone()[0])
        connection.execute("UPDATE meta SET value = ? WHERE key = 'recorded'", (json.dumps({**facts, key: value}),))
        connection.commit()
    return path


OF_TRACE = (
    "trace.json",
    "rank0/attempt0/index.jsonl",
    "rank0/attempt0/log.jsonl",
    "rank0/attempt0/step_00000002.parquet",
    "tokenizer/tokenizer.json",
)
DEEP = b"[" * 100_000


def many_words() -> bytes:
    return json.dumps({"model": {"vocab": {str(n): n for n in range(400_000)}}}).encode()


# What is large is made with its source, not whenever a test imports this module.
SOURCES: dict[str, Make] = {
    **{f"trace: {f} is {w}": partial(trace_instead, file=f, what=w) for f in OF_TRACE for w in ENDLESS},
    **{
        f"trace: {name} is {word}": partial(trace_with, place=place, name=name, value=NUMBERS[word])
        for place, name, words in (
            ("trace", "num_processes", ("10^9", "-5", "NaN", "10^400", "word")),
            ("trace", "eos_ids", ("million", "word", "10^9")),
            ("trace", "reward_names", ("million", "object")),
            ("trace", "num_generations", ("2^63", "NaN", "-5")),
            ("trace", "level", ("list", "object")),
            ("settings", "loss_type", ("list", "null", "10^9")),
            ("settings", "num_iterations", ("2^52", "infinite")),
            ("settings", "max_completion_length", ("2^63", "word")),
            ("settings", "epsilon", ("NaN", "10^400", "word")),
            ("index", "passes", ("2^52", "NaN", "-5", "true")),
            ("index", "dropped", ("word", "NaN", "10^400", "million", "object")),
            ("index", "global_step", ("2^52", "2^63", "0.5")),
            ("index", "micro_batches", ("million", "object")),
            ("index", "file", ("10^9", "list")),
        )
        for word in words
    },
    "trace: a folder attempt²": lambda folder: attempts(folder, "attempt²"),
    "trace: a rank that links to /": lambda folder: trace_instead(folder, "rank1", "/"),
    "trace: a description that is deep": partial(trace_file, file="trace.json", content=DEEP),
    "trace: a tokenizer that is deep": partial(trace_file, file="tokenizer/tokenizer.json", content=DEEP),
    "trace: a tokenizer of many words": lambda folder: trace_file(folder, "tokenizer/tokenizer.json", many_words()),
    "trace: an index of zeros": lambda folder: trace_file(folder, OF_TRACE[1], bytes(30_000_000)),
    "trace: a step that unfolds": partial(step_parquet, make=partial(equal_rows, count=20_000_000)),
    "trace: a step without columns": partial(step_parquet, make=columns),
    "completions: 20 million equal rows": partial(parquet, make=partial(equal_rows, count=20_000_000)),
    "completions: long equal rows": partial(parquet, make=partial(equal_rows, count=150_000, text="x" * 20_000)),
    "completions: a text of 100 MB": lambda folder: parquet(
        folder, partial(equal_rows, count=4, text="x" * 100_000_000)
    ),
    "completions: many columns": lambda folder: parquet(
        folder, partial(columns, **{f"r{n}": pa.array([1.0, 0.0]) for n in range(3_000)})
    ),
    "completions: nested columns": partial(parquet, make=partial(columns, prompt=nested(60))),
    "completions: numbers for prompts": partial(parquet, make=partial(columns, prompt=pa.array([1, 2]))),
    "completions: words for advantages": partial(parquet, make=partial(columns, advantage=pa.array(["a", "b"]))),
    "completions: bytes for prompts": partial(parquet, make=partial(columns, prompt=pa.array([b"\xff", b"\0"]))),
    "completions: NaN everywhere": partial(parquet, make=partial(columns, r=pa.array([float("nan")] * 2))),
    "completions: no rows": partial(parquet, make=partial(columns, prompt=pa.nulls(2), completion=pa.nulls(2))),
    **{
        f"completions: damaged {n}": partial(parquet, make=partial(damaged, begin=n / 8, end=(n + 1) / 8, byte=byte))
        for n, byte in enumerate((255, 0, None, 127, 255, 0, 255, None))
    },
    **{
        f"completions: a file is {what}": lambda folder, what=what: (
            one_instead(  # type: ignore[misc]
                folder, "completions_00002.parquet", what
            ).parent
        )
        for what in ENDLESS
    },
    "completions: only its ends": partial(one_file, name="completions_00001.parquet", content=b"PAR1" * 500),
    "verl: a score of 400 digits": lambda folder: verl(folder, row(score=10**400), row(score="nan")),
    "verl: lists for texts": lambda folder: verl(folder, row(input=[[1]] * 1000), row(output={})),
    "verl: a long uid": lambda folder: verl(folder, row(uid="_" * 1_000_000)),
    "verl: deep lines": lambda folder: verl(folder, row(), DEEP, row()),
    "verl: zeros": lambda folder: verl(folder, row(), bytes(1_000_000)),
    "verl: a line of 70 MB": lambda folder: verl(folder, row(), row(output="x" * 70_000_000)),
    "verl: surrogates": lambda folder: verl(folder, row(input="\ud800"), row(output="\udfff")),
    "verl: too many rows": lambda folder: verl(folder, *[row()] * 200_100),
    "verl: a number that is none": lambda folder: verl(folder, row(), name="².jsonl"),
    **{f"verl: a file is {what}": partial(one_instead, name="1.jsonl", what=what) for what in ENDLESS},
    "verifiers: a circle": partial(episodes, change=nodes(50, lambda n: (n + 1) % 50)),
    "verifiers: itself": partial(episodes, change=nodes(5, lambda n: n)),
    "verifiers: a long chain": partial(episodes, change=nodes(8_000, lambda n: n - 1 if n else None)),
    "verifiers: many leaves": partial(episodes, change=nodes(8_000, lambda n: n // 2 if n else None)),
    "verifiers: leaves of a long chain": partial(
        episodes, change=nodes(6_000, lambda n: None if not n else n - 1 if n < 3_000 else 2_999)
    ),
    **{
        f"verifiers: step {word}": partial(episodes, change=of_run(step=NUMBERS[word]))
        for word in ("2^63", "10^400", "NaN", "word", "list")
    },
    "verifiers: words for numbers": partial(episodes, change=of_node(logprobs=["a"], token_ids="many", mask={})),
    "verifiers: NaN for numbers": partial(episodes, change=of_node(logprobs=[float("nan")], entropies=[10**400])),
    "verifiers: rewards of words": partial(episodes, change=of_trace(rewards={"a": "b", "": None, "c": {"score": []}})),
    "verifiers: many rewards": partial(episodes, change=of_trace(rewards={str(n): 1.0 for n in range(20_000)})),
    **{f"verifiers: {what}": partial(episodes, change=of_node(message=message)) for what, message in MESSAGES.items()},
    "verifiers: calls of nothing": partial(
        episodes, change=of_trace(calls=[{"node": -1, "time": {"start": "a", "end": []}, "error": 7}, None, 5])
    ),
    "verifiers: calls without an end": partial(
        episodes, change=of_trace(calls=[{"node": 1, "time": {"start": float("nan"), "end": float("inf")}}])
    ),
    "verifiers: metrics of words": partial(
        episodes, change=of_trace(metrics={"a": "b", "": None, "c": 10**400, "d": True}, errors=["no", 7, {}])
    ),
    "verifiers: weights of words": partial(
        episodes, change=of_node(loss_weights={"ce": "many", "rl": [None, "x", []]}, is_content="all")
    ),
    "verifiers: a million traces": partial(episodes, change=lambda line: line.update(traces=[{}] * 1_000_000)),
    **{f"verifiers: the file is {what}": partial(one_instead, name="traces.jsonl", what=what) for what in ENDLESS},
    "trackio: a view": lambda folder: database(
        folder, "ALTER TABLE metrics RENAME TO m", "CREATE VIEW metrics AS SELECT * FROM m"
    ),
    "trackio: an endless view": lambda folder: database(
        folder,
        "DROP TABLE metrics",
        "CREATE VIEW metrics AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT * FROM n",
    ),
    "trackio: steps of many digits": lambda folder: database(
        folder, "UPDATE metrics SET metrics = replace(metrics, '\"step\": ', '\"step\": ' || printf('%.100000c', '9'))"
    ),
    "trackio: names of runs": lambda folder: database(
        folder,
        "INSERT INTO metrics(run_id, timestamp, run_name, step, metrics) "
        "VALUES ('x', 'y', '../../etc' || char(10) || char(0), 1, '{}')",
    ),
    "trackio: a large value": lambda folder: database(
        folder, "UPDATE metrics SET metrics = '{\"a\": \"' || printf('%.50000000c', 'x') || '\"}'"
    ),
    "trackio: deep values": lambda folder: database(folder, "UPDATE metrics SET metrics = ?", values=("[" * 100_000,)),
    "trackio: numbers for values": lambda folder: database(folder, "UPDATE metrics SET metrics = 5, run_id = 7"),
    "trackio: nothing": lambda folder: database(folder, "DELETE FROM metrics"),
    "trackio: cut": partial(database_bytes, change=lambda content: content[: len(content) // 2]),
    "trackio: overwritten": partial(database_bytes, change=lambda content: content[:4096] + b"\xff" * 20_000),
    "trackio: a log of anything": partial(database_bytes, change=lambda _: b"\x37\x7f\x06\x82" * 9_000, ending="-wal"),
    **{f"trackio: the log is {what}": partial(database_log, what=what) for what in ENDLESS},
    **{f"trackio: the file is {what}": partial(one_instead, name="project.db", what=what) for what in ENDLESS},
    **{
        f"converted: {key} is {word}": partial(converted, key=key, value=NUMBERS[word])
        for key, words in (
            ("labels", ("million", "10^9", "word")),
            ("notes", ("million",)),
            ("processes", ("10^400", "NaN")),
        )
        for word in words
    },
}
"""Sources that are created within a second or two."""

LONG: dict[str, Make] = {
    "trace: 15 million bad lines of the index": lambda folder: trace_file(folder, OF_TRACE[1], b"x\n" * BAD_LINES),
    "trace: 15 million bad lines of the log": lambda folder: trace_file(folder, OF_TRACE[2], b"x\n" * BAD_LINES),
    "trace: a million lines of the index": partial(long_index, count=1_000_000),
    "trace: 60,000 attempts": lambda folder: attempts(folder, *(f"attempt{n}" for n in range(1, 60_001))),
    "verl: 15 million bad lines": lambda folder: one_file(folder, "1.jsonl", row() + b"\n" + b"x\n" * BAD_LINES).parent,
    "verl: 60,000 files": lambda folder: many_files(folder, "{}.jsonl", 60_000, row() + b"\n"),
    "completions: 60,000 files": lambda folder: many_files(folder, "completions_{:05d}.parquet", 60_000),
    "verifiers: 15 million bad lines": lambda folder: one_file(
        folder, "traces.jsonl", (DATA / "verifiers" / "traces.jsonl").read_bytes() + b"x\n" * BAD_LINES
    ),
    "trackio: 500,000 rows": partial(many_rows, count=500_000),
}
"""Sources that take longer to create or to read."""


def made(name: str, folder: Path) -> Path:
    """Create the source ``name`` in ``folder``, which is created as well."""
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        return {**SOURCES, **LONG}[name](folder)
    raise AssertionError(f"{folder} is not empty")


if __name__ == "__main__":  # in a separate process, so that its memory does not count as the window's
    for count, each in enumerate({**SOURCES, **(LONG if "--long" in sys.argv else {})}):
        (Path(sys.argv[1]) / f"{count:03d}").mkdir(parents=True)
        place = made(each, Path(sys.argv[1]) / f"{count:03d}")
        print(json.dumps([each, str(place)]), flush=True)
