"""The examples of docs/guide/data/brokers.md, from the producer to the predictions, against the servers of the tests."""

import json
import re
import shlex

from .conftest import ROOT

PAGE = (ROOT / "docs" / "guide" / "data" / "brokers.md").read_text("utf-8")


def blocks(title):
    """The kind and the text of each block of a section."""
    section = next(part for part in PAGE.split("\n## ") if part.startswith(title))
    return re.findall(r"```(\{code-block\} python|sh)\n(.*?)```", section, re.DOTALL)


def run(title, places, starter, folder):
    """Run the blocks of a section at other addresses and in another folder; returns the names they leave."""
    names = {}
    for kind, text in blocks(title):
        for old, new in places.items():
            assert old in PAGE
            text = text.replace(old, new)
        if kind != "sh":
            exec(compile(text, title, "exec"), names)
            continue
        for line in text.splitlines():
            command = [
                str(folder / word) if word.endswith((".safetensors", ".jsonl")) else word for word in shlex.split(line)
            ]
            assert command[0] == "gristmill"
            starter.run(*command[1:], "--until-end", log=folder / "log")
    return names


def test_fraud_with_late_labels(servers, starter, tmp_path):
    kafka = servers["kafka"]
    for topic in ("payments", "chargebacks", "answers"):
        kafka.topic(topic)
    names = run("Fraud", {"127.0.0.1:9092": kafka.hosts}, starter, tmp_path)
    assert len(names["answers"]) == 500
    assert {"position", "prediction"} <= set(names["answers"][0])


def test_unusual_lines_of_a_log(servers, starter, tmp_path):
    port = str(servers["redis"].port)
    places = {"127.0.0.1:6379": f"127.0.0.1:{port}", '"127.0.0.1", 6379': f'"127.0.0.1", {port}'}
    names = run("Unusual", places, starter, tmp_path)
    assert len(names["answers"]) == 1001
    assert names["answers"][-1]["alarm"]
    assert sum(answer["alarm"] for answer in names["answers"][500:-1]) < 50


def test_one_model_a_machine(servers, starter, tmp_path):
    from gristmill.streams import connect

    port = str(servers["mqtt"].port)
    (_, command), (_, producer) = blocks("Predictive")
    url = shlex.split(command)[2].replace("@127.0.0.1/", f"@127.0.0.1:{port}/")
    with connect(url) as reader:
        reader.open(None)
    exec(compile(producer.replace("1883", port), "producer", "exec"), {})
    words = [
        str(tmp_path / word) if word.endswith((".safetensors", ".jsonl")) else word for word in shlex.split(command)
    ]
    starter.run(*words[1:2], url, *words[3:], "--until-end", log=tmp_path / "log")
    answers = [json.loads(line) for line in (tmp_path / "alarms.jsonl").read_text().splitlines()]
    assert len(answers) == 400
    assert {answer["key"] for answer in answers} == {"plant/a/pump", "plant/b/pump"}
    late = [abs(answer["prediction"] - (1.2 if "/a/" in answer["key"] else 2.2)) for answer in answers[200:]]
    assert max(late) < 0.6
