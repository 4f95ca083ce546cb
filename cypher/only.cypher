// What only one of two groups has: the statements about the first group whose predicate and object
// together were never said of the second.
//
//   $group               the group's name
//   $other               the group to hold it against
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $limit               rows at most (default: 25)
//
// In Neo4j Browser, first:
//   :params {group: "Women", other: "Men", run: "demo", arm: null, min_acceptability: 0.5, limit: 25}

MATCH (g:SocialGroup {name: $group})-[s:STEREOTYPE {run: $run}]->(o:Object)
WHERE ($arm IS NULL OR s.arm = $arm)
      AND coalesce(s.acceptability, 1.0) >= $min_acceptability
OPTIONAL MATCH (h:SocialGroup {name: $other})-[t:STEREOTYPE {run: $run}]->(o)
WHERE t.predicate = s.predicate AND t.arm = s.arm
WITH s, o, count(t) AS also
WHERE also = 0
RETURN s.predicate AS predicate, o.text AS object, s.count AS count,
       round(s.regard, 4) AS regard, round(s.toxicity, 4) AS toxicity, s.arm AS arm
ORDER BY count DESC, predicate, object, arm
LIMIT toInteger($limit)
