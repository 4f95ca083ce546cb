// What models' probabilities say of the items of benchmarks (needs kgbias benchmark, or kgbias probe
// pairs or apx with --store).
//
// scores: of the item's candidates, in the order of the benchmark's file; of APX the log-likelihoods
// with each descriptor, and then how many tokens each has. item: what its file calls it; the
// sentences are not kept.
//
//   $benchmark   apx, stereoset, crows-pairs, bbq or winogender (default: every benchmark)
//   $category    only this category (default: every category)
//   $limit       rows at most (default: 50)
//
// In Neo4j Browser, first:  :params {benchmark: null, category: null, limit: 50}

MATCH (i:BenchmarkItem)-[r:READ_BY]->(m:Model)
WHERE ($benchmark IS NULL OR i.benchmark = $benchmark)
      AND ($category IS NULL OR i.category = $category)
RETURN i.benchmark AS benchmark, i.category AS category, i.name AS item, m.name AS model,
       r.scores AS scores, r.tokens AS tokens
ORDER BY benchmark, category, item, model
LIMIT toInteger($limit)
