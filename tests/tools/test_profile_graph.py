"""The profile of a graph has the ops that it runs."""

from tools import profile_graph


def test_a_profile_of_the_hash(capsys):
    assert profile_graph.main(["--model", "random_normal", "--runs", "2"]) == 0
    summary, *ops = capsys.readouterr().out.splitlines()
    assert summary.startswith("random_normal, portable: ")
    assert {"Cast", "Mul"} <= {line.split()[0] for line in ops}
    assert len(ops) == 6
