"""A scripted model that answers every prompt of the package, and a corpus with two communities."""

import json
import re
from itertools import pairwise

from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

LIGHTS = [
    "Ada Byron kept the lamp of Tern Rock with Bede Orr.",
    "Bede Orr saw the Meridian near Tern Rock.",
    "The Meridian struck Tern Rock while Ada Byron slept.",
]
LOOMS = [
    "Carl Dane built a loom in Velsin with Dora Finch.",
    "Dora Finch sold silk from Velsin when Carl Dane left.",
    "The Velsin Guild paid Carl Dane and Dora Finch for silk.",
]


def nodes(texts: list[str], document: str, **metadata: str) -> list[TextNode]:
    return [
        TextNode(
            id_=f"{document}-{i}",
            text=text,
            metadata=metadata,
            start_char_idx=i,
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)},
        )
        for i, text in enumerate(texts)
    ]


def corpus() -> list[TextNode]:
    return [*nodes(LIGHTS, "lights"), *nodes(LOOMS, "looms")]


def fenced(prompt: str, name: str) -> list[str]:
    return re.findall(rf'<{name}-\w+ number="\d+">\n(.*?)\n</{name}', prompt, re.DOTALL)


NAME = re.compile(r"(?:The )?((?:[A-Z]\w+ )*[A-Z]\w+)")


def extraction(text: str) -> str:
    names = list(dict.fromkeys(name for name in NAME.findall(text) if name not in ("The",)))
    entities = [{"name": name, "type": "thing", "description": f"{name} is named here."} for name in names]
    relations = [{"source": a, "target": b, "description": text, "strength": 5} for a, b in pairwise(names)]
    return json.dumps({"entities": entities, "relations": relations})


def answer(prompt: str) -> str:
    """What an obliging model says to each prompt."""
    if "List the entities of the text" in prompt:
        return extraction(fenced(prompt, "text")[0])
    if "A first reading of the text" in prompt:
        return '{"entities": [], "relations": []}'
    if "Write a report about a group" in prompt:
        (statements,) = fenced(prompt, "statements")
        numbered = re.findall(r"^\[(\d+)\] (.*)", statements, re.MULTILINE)
        numbers = [int(number) for number, _ in numbered]
        findings = [
            {"text": f"They belong together. {numbered[0][1]}", "sources": numbers[:2]},
            {"text": "This is invented.", "sources": [999]},
        ]
        return json.dumps({"title": "A group", "summary": "A summary.", "rating": "7/10", "findings": findings})
    if "List what the numbered passages" in prompt:
        points = [
            {"text": f"Point of {text}", "score": 90 if "Byron" in text else 0, "sources": [i]}
            for i, text in enumerate(fenced(prompt, "passage"), start=1)
        ]
        return json.dumps({"points": points})
    if "Rate each numbered report" in prompt:
        reports = fenced(prompt, "report")
        return json.dumps({"ratings": [{"number": i, "rating": 4} for i in range(1, len(reports) + 1)]})
    if "Does the passage between the tags help" in prompt:
        return "Yes." if "Byron" in fenced(prompt, "passage")[0] else "no"
    if "Write what a report of the following form" in prompt:
        return "Ada Byron and Bede Orr kept Tern Rock."
    if "follow-up question from the numbered" in prompt:
        return '{"answer": "Bede Orr did.", "sources": [1], "score": 80, "follow_ups": ["And then?"]}'
    if "Answer the question from the numbered passages" in prompt:
        return '{"answer": "Ada Byron did.", "sources": [1, 77], "score": "60/100", "follow_ups": ["Who wrote?"]}'
    return "The answer."
