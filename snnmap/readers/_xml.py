"""What XML graph files must keep that networkx does not ask of them."""

from __future__ import annotations

from pathlib import Path
from xml.parsers import expat

from snnmap.errors import InputError


def check_xml_graph(path: Path, what: str) -> None:
    """Every node has an id of its own, every edge joins two nodes, and no entities are declared.

    Args:
        path: a GraphML or GEXF file.
        what: the format's name, for messages.

    Raises:
        InputError: something is wrong; the line is named.
    """
    nodes: set[str] = set()
    ends: list[tuple[str, str, int]] = []
    parser = expat.ParserCreate()

    def error(problem: str, line: int | None = None) -> InputError:
        at = parser.CurrentLineNumber if line is None else line
        return InputError(path, problem, place=f"line {at}")

    def start(tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if name == "node":
            node = attributes.get("id")
            if node is None:
                raise error("a node has no id")
            if node in nodes:
                raise error(f"node {node!r} occurs twice")
            nodes.add(node)
        elif name == "edge":
            for end in ("source", "target"):
                if end not in attributes:
                    raise error(f"an edge has no {end}")
                ends.append((end, attributes[end], parser.CurrentLineNumber))

    def entity(name: str, *_: object) -> None:
        raise error(f"declares the entity {name!r}; expected plain XML")

    parser.StartElementHandler = start
    parser.EntityDeclHandler = entity
    try:
        with path.open("rb") as file:
            parser.ParseFile(file)
    except expat.ExpatError as problem:
        reason = expat.errors.messages.get(problem.code, str(problem))
        raise error(f"is no {what}: {reason}", problem.lineno) from None
    for end, node, line in ends:
        if node not in nodes:
            raise error(f"{end} {node!r} of an edge is none of the nodes", line)
