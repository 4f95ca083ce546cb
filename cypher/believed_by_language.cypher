// What a model believes of the same group in each language: a group is one node, whatever a run calls
// it (needs kgbias evidence, of runs in two languages or more).
//
// called: the group's name in that run. lift: in bits, as in `believed`.
//
//   $group     the group's name, in any of the languages (default: every group)
//   $model     the model's name (default: every model)
//   $verdict   believed, leaning, or bound to a word (default: "believed")
//   $limit     rows at most (default: 100)
//
// In Neo4j Browser, first:
//   :params {group: null, model: null, verdict: "believed", limit: 100}

MATCH (statement:Statement)-[b:BELIEVED]->(g:SocialGroup)
WHERE b.verdict = $verdict AND ($group IS NULL OR g.name = $group)
      AND ($model IS NULL OR b.model = $model)
WITH g, b, statement, b.run AS name
MATCH (r:Run {name: name})-[seeded:SEEDED]->(g)
RETURN g.name AS group, r.language AS language, coalesce(seeded.names[0], g.name) AS called,
       statement.text AS statement, round(b.lift, 4) AS lift, round(b.low, 4) AS low,
       round(b.high, 4) AS high, name AS run, b.model AS model
ORDER BY group, language, lift DESC, statement, run, model
LIMIT toInteger($limit)
