// The objects that bridge groups: named for the most groups, with these groups.
//
//   $run     the run (default: the newest)
//   $limit   rows at most (default: 25)
//
// In Neo4j Browser, first:  :params {run: "demo", limit: 25}

MATCH (g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(o:Object)
WITH o, count(DISTINCT g) AS groups, sum(s.count) AS count
WHERE groups > 1
WITH o, groups, count ORDER BY groups DESC, count DESC, o.text LIMIT toInteger($limit)
MATCH (g:SocialGroup)-[:STEREOTYPE {run: $run}]->(o)
WITH o, groups, count, g ORDER BY g.name
WITH o, groups, count, collect(DISTINCT g.name) AS names
RETURN o.text AS object, groups, count, names
ORDER BY groups DESC, count DESC, object
