// The statements with the lowest regard (p(positive) - p(negative), from -1 to 1).
//
//   $run     the run (default: the newest)
//   $limit   rows at most (default: 25)
//
// In Neo4j Browser, first:  :params {run: "demo", limit: 25}

MATCH (g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(o:Object)
WHERE s.regard IS NOT NULL
RETURN g.name AS group, s.predicate AS predicate, o.text AS object,
       round(s.regard, 4) AS regard, s.count AS count
ORDER BY s.regard, group, predicate, object
LIMIT toInteger($limit)
