// What two groups share: the objects that a model named for both, with the predicates of each.
//
//   $group               one group's name
//   $other               the other group's name
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $limit               rows at most (default: 25)
//
// In Neo4j Browser, first:
//   :params {group: "Women", other: "Men", run: "demo", arm: null, min_acceptability: 0.5, limit: 25}

MATCH (g:SocialGroup {name: $group})-[s:STEREOTYPE {run: $run}]->(o:Object)
WHERE ($arm IS NULL OR s.arm = $arm)
      AND coalesce(s.acceptability, 1.0) >= $min_acceptability
WITH o, s ORDER BY s.predicate
WITH o, s.arm AS arm, sum(s.count) AS count, collect(s.predicate) AS predicates
MATCH (h:SocialGroup {name: $other})-[t:STEREOTYPE {run: $run}]->(o)
WHERE t.arm = arm AND coalesce(t.acceptability, 1.0) >= $min_acceptability
WITH o, arm, count, predicates, t ORDER BY t.predicate
WITH o, arm, count, predicates, sum(t.count) AS other_count,
     collect(t.predicate) AS other_predicates
RETURN o.text AS object, predicates, count, other_predicates, other_count, arm
ORDER BY count + other_count DESC, object, arm
LIMIT toInteger($limit)
