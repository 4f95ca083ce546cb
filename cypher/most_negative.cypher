// The statements with the lowest regard (p(positive) - p(negative), from -1 to 1).
//
// How far labels of regard can be believed: `kgbias query most_negative` says it, where it was counted.
//
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $limit               rows at most, which may leave out some with the same regard as the last (default: 25)
//
// In Neo4j Browser, first:  :params {run: "demo", arm: null, min_acceptability: 0.5, limit: 25}

MATCH (g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(o:Object)
WHERE s.regard IS NOT NULL AND ($arm IS NULL OR s.arm = $arm)
      AND coalesce(s.acceptability, 1.0) >= $min_acceptability
WITH g, s, o
ORDER BY s.run, s.regard, g.name, s.predicate, o.text, s.arm  // as an index holds them
LIMIT toInteger($limit)
RETURN g.name AS group, s.predicate AS predicate, o.text AS object,
       round(s.regard, 4) AS regard, s.count AS count, s.arm AS arm
ORDER BY s.regard, group, predicate, object, arm
