// Only said: statements of the crawl that were read after the group's names and are not believed of it,
// those said most often first (needs kgbias evidence). The verdict says of some that they lean that
// way, or are bound to a word.
//
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $limit               rows at most (default: 25)
//
// In Neo4j Browser, first:  :params {run: "demo", arm: null, min_acceptability: 0.5, limit: 25}

MATCH (statement:Statement)
WHERE EXISTS { (statement)-[:BELIEVED {run: $run}]->() }
WITH statement, statement.predicate_uid AS predicate_uid, statement.object_uid AS object_uid
MATCH (p:Predicate {uid: predicate_uid})
MATCH (o:Object {uid: object_uid})
MATCH (o)<-[s:STEREOTYPE {run: $run}]-(g)
WHERE s.predicate = p.text AND ($arm IS NULL OR s.arm = $arm)
      AND coalesce(s.acceptability, 1.0) >= $min_acceptability
MATCH (statement)-[b:BELIEVED {run: $run}]->(g)
WHERE b.verdict <> 'believed'
RETURN g.name AS group, s.predicate AS predicate, o.text AS object, s.count AS count,
       round(s.regard, 4) AS regard, b.model AS model, round(b.lift, 4) AS lift,
       round(b.low, 4) AS low, round(b.high, 4) AS high, b.names AS names,
       b.verdict AS verdict, s.arm AS arm
ORDER BY count DESC, lift, group, predicate, object, model, arm
LIMIT toInteger($limit)
