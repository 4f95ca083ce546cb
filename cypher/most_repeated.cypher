// The statements that a model made most often.
//
//   $run     the run (default: the newest)
//   $limit   rows at most (default: 25)
//
// In Neo4j Browser, first:  :params {run: "demo", limit: 25}

MATCH (g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(o:Object)
RETURN g.name AS group, s.predicate AS predicate, o.text AS object, s.count AS count,
       round(s.regard, 4) AS regard, round(s.toxicity, 4) AS toxicity
ORDER BY count DESC, group, predicate, object
LIMIT toInteger($limit)
