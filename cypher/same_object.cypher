// What a model said of other groups with the same object: the neighbourhood of some statements, which
// kgbias ask shows beside its answer.
//
//   $triples             uids of the statements, with commas between
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $limit               rows at most (default: 25)
//
// In Neo4j Browser, first:
//   :params {triples: "0f6c2a", run: "demo", arm: null, min_acceptability: 0.5, limit: 25}

MATCH (g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(o:Object)
WHERE s.triple IN split($triples, ",") AND ($arm IS NULL OR s.arm = $arm)
MATCH (h:SocialGroup)-[n:STEREOTYPE {run: $run}]->(o)
WHERE h.uid <> g.uid AND n.arm = s.arm AND coalesce(n.acceptability, 1.0) >= $min_acceptability
RETURN s.triple AS triple, h.name AS group, n.predicate AS predicate, o.text AS object,
       n.count AS count, n.arm AS arm, n.triple AS neighbour
ORDER BY triple, count DESC, group, predicate, arm, neighbour
LIMIT toInteger($limit)
