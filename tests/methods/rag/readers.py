"""Files that this method reads, for the attack on readers (tests/attack/readers.py)."""

import json

from tests.attack.readers import Reader

RAGAS = json.dumps(
    {
        "nodes": [
            {"id": "a", "type": "document", "properties": {"page_content": "Women like tea."}},
            {"id": "b", "type": "chunk", "properties": {"entities": ["women", "tea"]}},
        ],
        "relationships": [
            {
                "id": "r",
                "type": "child",
                "source": "a",
                "target": "b",
                "bidirectional": False,
                "properties": {"score": 0.5},
            }
        ],
    }
)
RECORDS = (
    '{"question": "Who?", "answer": "Bo.", "context": "Bo sings."}\n'
    '{"user_input": "Who?", "response": "Bo.", "retrieved_contexts": ["Bo sings.", "Al."]}\n'
)


READERS = (
    Reader("graph of RAGAS", "kgbias.methods.rag.graph_file:read_ragas", {"json": RAGAS.encode()}),
    Reader(
        "records", "kgbias.methods.rag.metrics:read_answer_records", {"jsonl": RECORDS.encode()}
    ),
)
READING_COMMANDS = (("faithfulness", "r"),)
EXPORT_ENDINGS = {"ragas": ".json"}
