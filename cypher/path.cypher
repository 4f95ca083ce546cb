// The path between two groups: through an object that both share, else through a third group that
// shares an object with each.
//
//   $group   one group's name
//   $other   the other group's name
//   $run     the run (default: the newest)
//   $limit   rows at most (default: 5)
//
// In Neo4j Browser, first:  :params {group: "Women", other: "Men", run: "demo", limit: 5}

MATCH (a:SocialGroup {name: $group})
MATCH (b:SocialGroup {name: $other})
OPTIONAL MATCH (a)-[:STEREOTYPE {run: $run}]->(o:Object)<-[:STEREOTYPE {run: $run}]-(b)
WITH a, b, collect(DISTINCT o.text) AS direct
OPTIONAL MATCH (a)-[:STEREOTYPE {run: $run}]->(o:Object)<-[:STEREOTYPE {run: $run}]-(m:SocialGroup)
WHERE size(direct) = 0 AND m <> a AND m <> b
WITH a, b, direct, m, min(o.text) AS first
OPTIONAL MATCH (m)-[:STEREOTYPE {run: $run}]->(o:Object)<-[:STEREOTYPE {run: $run}]-(b)
WITH a, b, direct, m, first, min(o.text) AS second
WITH a, b, CASE
    WHEN size(direct) > 0 THEN [object IN direct | [a.name, object, b.name]]
    WHEN second IS NOT NULL THEN [[a.name, first, m.name, second, b.name]]
    ELSE [] END AS found
UNWIND found AS path
RETURN size(path) - 1 AS steps, path
ORDER BY steps, path[1], path[2]
LIMIT toInteger($limit)
