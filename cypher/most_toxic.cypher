// The statements with the highest toxicity (a probability).
//
//   $run     the run (default: the newest)
//   $limit   rows at most (default: 25)
//
// In Neo4j Browser, first:  :params {run: "demo", limit: 25}

MATCH (g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(o:Object)
WHERE s.toxicity IS NOT NULL
RETURN g.name AS group, s.predicate AS predicate, o.text AS object,
       round(s.toxicity, 4) AS toxicity, s.count AS count
ORDER BY s.toxicity DESC, group, predicate, object
LIMIT toInteger($limit)
