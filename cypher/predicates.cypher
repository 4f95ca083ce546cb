// Predicates by group: how often each was said, of how many objects, with the mean regard.
//
//   $run     the run (default: the newest)
//   $least   leave out predicates said less often than this (default: 2)
//   $limit   rows at most (default: 50)
//
// In Neo4j Browser, first:  :params {run: "demo", least: 2, limit: 50}

MATCH (g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(o:Object)
WITH g.name AS group, s.predicate AS predicate, sum(s.count) AS count,
     count(DISTINCT o) AS objects, round(avg(s.regard), 4) AS mean_regard
WHERE count >= $least
RETURN group, predicate, count, objects, mean_regard
ORDER BY group, count DESC, predicate
LIMIT toInteger($limit)
