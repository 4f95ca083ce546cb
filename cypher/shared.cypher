// What two groups share: the objects that a model named for both, with the predicates of each.
//
//   $group   one group's name
//   $other   the other group's name
//   $run     the run (default: the newest)
//   $limit   rows at most (default: 25)
//
// In Neo4j Browser, first:  :params {group: "Women", other: "Men", run: "demo", limit: 25}

MATCH (g:SocialGroup {name: $group})-[s:STEREOTYPE {run: $run}]->(o:Object)
WITH o, s ORDER BY s.predicate
WITH o, sum(s.count) AS count, collect(s.predicate) AS predicates
MATCH (h:SocialGroup {name: $other})-[t:STEREOTYPE {run: $run}]->(o)
WITH o, count, predicates, t ORDER BY t.predicate
WITH o, count, predicates, sum(t.count) AS other_count, collect(t.predicate) AS other_predicates
RETURN o.text AS object, predicates, count, other_predicates, other_count
ORDER BY count + other_count DESC, object
LIMIT toInteger($limit)
