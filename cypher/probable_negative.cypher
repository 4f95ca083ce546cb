// What is said, believed and negative: statements of the crawl with a low regard that a model finds
// likelier of this group than of the others (needs kgbias measure and kgbias probe).
//
// How far labels of regard can be believed: `kgbias query probable_negative` says it, where it was counted.
//
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $regard              regard at most (default: -0.3)
//   $rank                rank of the group at most, 1 being the likeliest (default: 1)
//   $margin              lift at least, in bits (default: 1.0)
//   $level               corrected p-value of the lift at most (default: 0.05)
//   $limit               rows at most (default: 25)
//
// In Neo4j Browser, first:
//   :params {run: "demo", arm: null, min_acceptability: 0.5, regard: -0.3, rank: 1, margin: 1.0, level: 0.05, limit: 25}

MATCH (t:Triple)-[:STATES]->(statement:Statement)-[p:PROBED {run: $run}]->(g:SocialGroup)
WHERE g.uid = t.group_uid AND p.rank <= $rank AND p.lift >= $margin AND p.p_value <= $level
WITH g, p, t.uid AS triple, statement.object_uid AS object_uid
MATCH (o:Object {uid: object_uid})
MATCH (o)<-[s:STEREOTYPE {run: $run}]-(g)
WHERE s.triple = triple AND s.regard <= $regard AND ($arm IS NULL OR s.arm = $arm)
      AND coalesce(s.acceptability, 1.0) >= $min_acceptability
RETURN g.name AS group, s.predicate AS predicate, o.text AS object, s.count AS count,
       round(s.regard, 4) AS regard, p.model AS model, p.rank AS rank,
       round(p.lift, 4) AS lift, s.arm AS arm
ORDER BY s.regard, group, predicate, object, model, arm
LIMIT toInteger($limit)
