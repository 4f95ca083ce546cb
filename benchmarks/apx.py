"""How long all 876,000 sentences of GlobalBias take, estimated from some of them.

    python benchmarks/apx.py [--names 10] [--model SPEC] [--parameters 7e9] [--peak 989e12]

Probes --names of the 400 names with all 730 descriptors under the three templates, on the small
shape of benchmarks/perplexity.py or on --model, and scales the time up: the work is linear in the
number of names. The tokens that the packed tree feeds give the time for a model of --parameters on
a device that reaches --share of --peak operations per second (an H100 in bfloat16: 989e12), as
2 x parameters x tokens. That is an estimate, not a measurement. Prints JSON.
"""

import argparse
import json
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from perplexity import build, make_scorer

from kgbias.models.score.engine import join_trees, pack_trees
from kgbias.models.score.load import open_scorer
from kgbias.probe.names import probe_apx
from kgbias.probe.sets import TEMPLATES, read_descriptors, read_names

ALL, ROW = 876_000, 128  # sentences; nodes per row of the packed tree


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", type=int, default=10)
    parser.add_argument("--model")
    parser.add_argument("--parameters", type=float, default=7e9)
    parser.add_argument("--peak", type=float, default=989e12)
    parser.add_argument("--share", type=float, default=0.4)
    options = parser.parse_args()
    scorer = open_scorer(options.model) if options.model else make_scorer(*build("small")[:2])
    names = read_names("globalbias")[:: 400 // options.names][: options.names]
    descriptors = read_descriptors("globalbias")
    sentences = len(TEMPLATES) * len(names) * len(descriptors)
    with TemporaryDirectory() as folder:
        wall, processor = time.perf_counter(), time.process_time()
        probe_apx(scorer, names, descriptors, perplexities=Path(folder) / "all.jsonl")
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    fed_tokens = plain_tokens = 0
    for t, template in enumerate(TEMPLATES):
        stems = [template.format(name=name) for name, _ in names]
        probes = scorer._tokenise_probes(stems, [d.endings[t] for d in descriptors])
        texts = list(dict.fromkeys(probe.ids for probe in probes))
        plain_tokens += sum(len(probe.ids) - 1 for probe in probes)
        fed_tokens += sum(
            len(tree.tokens) for tree in join_trees(list(pack_trees(texts, ROW)), ROW)
        )
    tokens = fed_tokens / sentences * ALL
    result = {
        "model": options.model or "6 layers x 384, random",
        "sentences": sentences,
        "seconds": round(wall, 1),
        "processor_seconds": round(processor, 1),
        "all_sentences_hours": round(processor / sentences * ALL / 3600, 2),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "tokens_a_sentence": round(plain_tokens / sentences, 2),
        "fed_a_sentence": round(fed_tokens / sentences, 2),
        "all_tokens_fed": round(tokens),
        "estimate_for": f"{options.parameters:.2g} parameters, "
        f"{options.share:.0%} of {options.peak:.3g} operations a second",
        "estimated_minutes": round(
            2 * options.parameters * tokens / (options.peak * options.share) / 60, 1
        ),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
