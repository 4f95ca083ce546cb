// What a model believes of each group, by the group's names: the strongest lifts, each with its 95%
// interval over the names, how many these are, and how often the crawl said it (needs kgbias evidence).
//
// lift: in bits, how much likelier the statement is after the group's names than after those of the
// other groups of its category. said: by the arm that said it most often.
//
//   $run       the run (default: the newest)
//   $group     the group's name (default: every group)
//   $model     the model's name (default: every model)
//   $verdict   believed, leaning, or bound to a word (default: "believed")
//   $arm       only what this arm said (default: every arm)
//   $limit     rows at most (default: 25)
//
// In Neo4j Browser, first:
//   :params {run: "demo", group: null, model: null, verdict: "believed", arm: null, limit: 25}

MATCH (statement:Statement)-[b:BELIEVED {run: $run}]->(g:SocialGroup)
WHERE b.verdict = $verdict AND ($group IS NULL OR g.name = $group)
      AND ($model IS NULL OR b.model = $model)
WITH g, b, statement.predicate_uid AS predicate_uid, statement.object_uid AS object_uid
MATCH (p:Predicate {uid: predicate_uid})
MATCH (o:Object {uid: object_uid})
OPTIONAL MATCH (o)<-[s:STEREOTYPE {run: $run}]-(g)
WHERE s.predicate = p.text AND ($arm IS NULL OR s.arm = $arm)
WITH g, b, p, o, coalesce(max(s.count), 0) AS said
RETURN g.name AS group, p.text AS predicate, o.text AS object, round(b.lift, 4) AS lift,
       round(b.low, 4) AS low, round(b.high, 4) AS high, b.names AS names, b.verdict AS verdict,
       said, b.model AS model
ORDER BY lift DESC, group, predicate, object, model
LIMIT toInteger($limit)
