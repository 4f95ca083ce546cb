// The objects that bridge groups: named for the most groups, with these groups.
//
//   $run     the run (default: the newest)
//   $limit   rows at most (default: 25)
//
// In Neo4j Browser, first:  :params {run: "demo", limit: 25}

MATCH (g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(o:Object)
WITH o, g, sum(s.count) AS said
ORDER BY g.name
WITH o, count(g) AS groups, sum(said) AS count, collect(g.name) AS names
WHERE groups > 1
RETURN o.text AS object, groups, count, names
ORDER BY groups DESC, count DESC, object
LIMIT toInteger($limit)
