// The path between two groups: through an object that both share, else through a third group that
// shares an object with each.
//
//   $group               one group's name
//   $other               the other group's name
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $limit               rows at most (default: 5)
//
// In Neo4j Browser, first:
//   :params {group: "Women", other: "Men", run: "demo", arm: null, min_acceptability: 0.5, limit: 5}

MATCH (a:SocialGroup {name: $group})
MATCH (b:SocialGroup {name: $other})
OPTIONAL MATCH (a)-[s:STEREOTYPE {run: $run}]->(o:Object)<-[t:STEREOTYPE {run: $run}]-(b)
WHERE ($arm IS NULL OR s.arm = $arm)
      AND coalesce(s.acceptability, 1.0) >= $min_acceptability
      AND ($arm IS NULL OR t.arm = $arm)
      AND coalesce(t.acceptability, 1.0) >= $min_acceptability
WITH a, b, collect(DISTINCT o.text) AS direct
OPTIONAL MATCH (a)-[s:STEREOTYPE {run: $run}]->(o:Object)
               <-[t:STEREOTYPE {run: $run}]-(m:SocialGroup)
WHERE size(direct) = 0 AND m <> a AND m <> b
      AND ($arm IS NULL OR s.arm = $arm)
      AND coalesce(s.acceptability, 1.0) >= $min_acceptability
      AND ($arm IS NULL OR t.arm = $arm)
      AND coalesce(t.acceptability, 1.0) >= $min_acceptability
WITH a, b, direct, m, min(o.text) AS first
OPTIONAL MATCH (b)-[t:STEREOTYPE {run: $run}]->(o:Object)<-[s:STEREOTYPE {run: $run}]-(m)
WHERE ($arm IS NULL OR s.arm = $arm)
      AND coalesce(s.acceptability, 1.0) >= $min_acceptability
      AND ($arm IS NULL OR t.arm = $arm)
      AND coalesce(t.acceptability, 1.0) >= $min_acceptability
WITH a, b, direct, m, first, min(o.text) AS second
WITH a, b, CASE
    WHEN size(direct) > 0 THEN [object IN direct | [a.name, object, b.name]]
    WHEN second IS NOT NULL THEN [[a.name, first, m.name, second, b.name]]
    ELSE [] END AS found
UNWIND found AS path
RETURN size(path) - 1 AS steps, path
ORDER BY steps, path[1], path[2]
LIMIT toInteger($limit)
