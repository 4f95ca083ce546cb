// A group and what a model said of it, as a picture in which an edge has the colour of its regard.
//
//   $group               the group's name
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $limit               edges at most (default: 40)
//
// In Neo4j Browser, first:
//   :params {group: "Women", run: "demo", arm: null, min_acceptability: 0.5, limit: 40}
// and, once, so that only these edges are drawn:
//   :config {"autoComplete": false}

MATCH p = (g:SocialGroup {name: $group})-[s:POSITIVE|NEUTRAL|NEGATIVE {run: $run}]->(o:Object)
WHERE ($arm IS NULL OR s.arm = $arm)
      AND coalesce(s.acceptability, 1.0) >= $min_acceptability
WITH p, s, o
ORDER BY s.count DESC, s.predicate, o.text, s.arm
LIMIT toInteger($limit)
RETURN p AS statement
