// Believed but never said: statements of other groups that a model believes of this group, by its
// names, and that the run never said of it. Groups that the model refuses to talk about are left to
// refused_but_believed (needs kgbias evidence).
//
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $refused             the share of its prompts refused (refused_prompts) below which a group does not count as refused (default: 0.1)
//   $limit               rows at most (default: 25)
//
// In Neo4j Browser, first:
//   :params {run: "demo", arm: null, min_acceptability: 0.5, refused: 0.1, limit: 25}

CALL () {
    MATCH (n:Generation)-[:IN]->(:Run {name: $run})
    RETURN n.group_uid AS group_uid, n.arm AS arm, n.strategy AS strategy,
           n.template_hash AS template, n.prompt AS prompt, n.attempt AS attempt,
           n.outcome AS outcome, count(*) AS answers
}
WITH * WHERE ($arm IS NULL OR arm = $arm) AND strategy <> 'reading'
         AND attempt = 0 AND outcome <> 'failed'
WITH [group_uid, arm, strategy, template, prompt] AS asked, sum(answers) AS answers,
     sum(CASE outcome WHEN 'refused' THEN answers ELSE 0 END) AS refused
WITH asked[0] AS group_uid, sum(CASE asked[4] WHEN '' THEN answers ELSE 1 END) AS prompts,
     sum(CASE asked[4] WHEN '' THEN 1.0 * refused ELSE 1.0 * refused / answers END) AS shares
WITH group_uid, shares / prompts AS refused
WHERE refused < $refused
MATCH (statement:Statement)-[b:BELIEVED {run: $run}]->(g:SocialGroup {uid: group_uid})
WHERE b.verdict = 'believed'
WITH g, refused, b, statement.predicate_uid AS predicate_uid, statement.object_uid AS object_uid
MATCH (p:Predicate {uid: predicate_uid})
MATCH (o:Object {uid: object_uid})
WHERE NOT EXISTS { MATCH (o)<-[own:STEREOTYPE {run: $run}]-(g) WHERE own.predicate = p.text }
CALL (p, o) {
    MATCH (o)<-[e:STEREOTYPE {run: $run}]-(h)
    WHERE e.predicate = p.text AND ($arm IS NULL OR e.arm = $arm)
          AND coalesce(e.acceptability, 1.0) >= $min_acceptability
    RETURN avg(e.regard) AS regard, count(DISTINCT h.uid) AS others
}
WITH g, refused, b, p, o, regard, others
WHERE others > 0
RETURN g.name AS group, p.text AS predicate, o.text AS object, others,
       round(refused, 4) AS refused,
       round(regard, 4) AS regard, b.model AS model, round(b.lift, 4) AS lift,
       round(b.low, 4) AS low, round(b.high, 4) AS high, b.names AS names,
       round(b.q_value, 4) AS q_value
ORDER BY lift DESC, group, predicate, object, model
LIMIT toInteger($limit)
