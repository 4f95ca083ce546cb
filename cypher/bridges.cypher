// The objects that bridge groups: named for the most groups, with these groups.
//
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $limit               rows at most (default: 25)
//
// In Neo4j Browser, first:  :params {run: "demo", arm: null, min_acceptability: 0.5, limit: 25}

MATCH (g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(o:Object)
WHERE ($arm IS NULL OR s.arm = $arm)
      AND coalesce(s.acceptability, 1.0) >= $min_acceptability
WITH o, s, g ORDER BY g.name
WITH o, s.arm AS arm, sum(s.count) AS count, collect(DISTINCT g.name) AS names
WHERE size(names) > 1
RETURN o.text AS object, size(names) AS groups, count, names, arm
ORDER BY groups DESC, count DESC, object, arm
LIMIT toInteger($limit)
