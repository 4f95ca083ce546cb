// Statements of a run that are known, related or new to the stereotypes that people recorded in a table,
// with the recorded one that is nearest (needs kgbias known).
//
// Known: recorded by the annotators of the table, neither true nor common. by: how the two go together.
//
//   $run     the run (default: the newest)
//   $mark    known, related, or new (default: "known")
//   $group   the group's name (default: every group)
//   $limit   rows at most (default: 50)
//
// In Neo4j Browser, first:  :params {run: "demo", mark: "known", group: null, limit: 50}

MATCH (t:Triple)-[e:RECORDED|NEW_TO {run: $run}]->(found)
WHERE coalesce(e.mark, 'new') = $mark
OPTIONAL MATCH (list:StereotypeTable)-[:LISTS]->(found)
WITH t, e, found, coalesce(list.name, found.name) AS table
MATCH (t)-[:SUBJECT]->(g:SocialGroup)
WHERE $group IS NULL OR g.name = $group
MATCH (t)-[:OBJECT]->(o:Object)
MATCH (g)-[s:STEREOTYPE {run: $run}]->(o)
WHERE s.triple = t.uid
RETURN g.name AS group, s.predicate AS predicate, o.text AS object, s.count AS count,
       table, found.people AS people, found.attribute AS recorded, e.matched_by AS by,
       round(e.similarity, 4) AS similarity, round(found.offensiveness, 4) AS offensiveness,
       found.annotators AS annotators, s.arm AS arm
ORDER BY table, count DESC, group, predicate, object, arm
LIMIT toInteger($limit)
