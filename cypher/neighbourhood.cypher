// What a model said about a group, the most repeated first.
//
//   $group   the group's name
//   $run     the run (default: the newest)
//   $limit   rows at most (default: 25)
//
// In Neo4j Browser, first:  :params {group: "Women", run: "demo", limit: 25}

MATCH (g:SocialGroup {name: $group})-[s:STEREOTYPE {run: $run}]->(o:Object)
RETURN s.predicate AS predicate, o.text AS object, s.count AS count,
       round(s.regard, 4) AS regard, round(s.toxicity, 4) AS toxicity
ORDER BY count DESC, predicate, object
LIMIT toInteger($limit)
