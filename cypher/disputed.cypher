// Statements that raters label differently, the most divided first: how many raters gave each label.
//
// The latest label of a rater counts, unless it was taken back; skipped statements are left out.
//
//   $run       the run (default: the newest)
//   $measure   what was labelled (default: "regard")
//   $kind      who labelled: person or model (default: "person")
//   $limit     rows at most (default: 50)
//
// In Neo4j Browser, first:  :params {run: "demo", measure: "regard", kind: "person", limit: 50}

MATCH (r:Rater {kind: $kind})-[e:LABELLED {measure: $measure}]->(t:Triple)
WITH t, r, e ORDER BY e.labelled, e.uid
WITH t, r, collect(e.label) AS given
WITH t, given[size(given) - 1] AS label
WHERE label <> '' AND label <> 'undo'
WITH t, label, count(*) AS raters
ORDER BY raters DESC, label
WITH t, collect(label) AS labels, collect(raters) AS raters
WHERE size(labels) > 1
MATCH (t)-[:SUBJECT]->(g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(:Object)
WHERE s.triple = t.uid
WITH DISTINCT g, t, labels, raters
RETURN g.name AS group, t.name AS statement, labels, raters
ORDER BY size(labels) DESC, statement
LIMIT toInteger($limit)
