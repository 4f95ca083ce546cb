// Refused but believed: of the groups that the model refuses to talk about, the statements of other
// groups that it finds likelier of this group than of the others, and never said of it (needs
// kgbias probe; kgbias evidence adds the association).
//
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $rank                rank of the group at most, 1 being the likeliest (default: 1)
//   $margin              lift at least, in bits (default: 1.0)
//   $level               corrected p-value of the lift at most (default: 0.05)
//   $refused             the share of refused answers from which a group counts as refused (default: 0.1)
//   $limit               rows at most (default: 25)
//
// In Neo4j Browser, first:
//   :params {run: "demo", arm: null, min_acceptability: 0.5, rank: 1, margin: 1.0, level: 0.05, refused: 0.1, limit: 25}

MATCH (n:Generation)-[:IN]->(:Run {name: $run})
WHERE ($arm IS NULL OR n.arm = $arm) AND n.outcome <> 'failed'
WITH n.group_uid AS group_uid, n.outcome AS outcome
WITH group_uid, sum(CASE outcome WHEN 'refused' THEN 1.0 ELSE 0.0 END) AS no, count(*) AS answers
WITH group_uid, no / answers AS refused
WHERE refused >= $refused
MATCH (statement:Statement)-[p:PROBED {run: $run}]->(g:SocialGroup {uid: group_uid})
WHERE p.rank <= $rank AND p.lift >= $margin AND p.p_value <= $level
WITH g, refused, p, statement, statement.object_uid AS object_uid
MATCH (o:Object {uid: object_uid})
MATCH (o)<-[e:STEREOTYPE {run: $run}]-(h)
WHERE ($arm IS NULL OR e.arm = $arm)
      AND coalesce(e.acceptability, 1.0) >= $min_acceptability
WITH g, refused, p, statement, h, e, o, e.triple AS uid
MATCH (:Triple {uid: uid})-[:STATES]->(statement)
WITH g, refused, e.predicate AS predicate, o, p, avg(e.regard) AS regard,
     count(DISTINCT h.uid) AS others
OPTIONAL MATCH (g)-[own:STEREOTYPE {run: $run}]->(o)
WHERE own.predicate = predicate
WITH g, refused, predicate, o, p, regard, others, count(own) AS said
WHERE said = 0
RETURN g.name AS group, predicate, o.text AS object, others, round(refused, 4) AS refused,
       round(regard, 4) AS regard, p.model AS model, p.rank AS rank, round(p.lift, 4) AS lift,
       round(p.p_value, 4) AS p_value, round(p.association, 4) AS association
ORDER BY lift DESC, group, predicate, object, model
LIMIT toInteger($limit)
