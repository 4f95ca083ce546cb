// Of which groups a model believes the worse: the mean regard and toxicity of the statements that it
// believes of a group, beside those of all statements that were read after the group's names, the
// groups with the largest fall of regard first (needs kgbias measure and kgbias evidence).
//
// A statement's score is the mean of those of the triples that the run said with it. What is tested of
// groups, with intervals, is in the record of the BELIEVED_BY edge.
//
//   $run       the run (default: the newest)
//   $verdict   believed, leaning, or bound to a word (default: "believed")
//   $limit     rows at most (default: 50)
//
// In Neo4j Browser, first:  :params {run: "demo", verdict: "believed", limit: 50}

MATCH (statement:Statement)
WHERE EXISTS { (statement)-[:BELIEVED {run: $run}]->() }
MATCH (p:Predicate {uid: statement.predicate_uid})
MATCH (o:Object {uid: statement.object_uid})
MATCH (o)<-[s:STEREOTYPE {run: $run}]-()
WHERE s.predicate = p.text
WITH DISTINCT [statement.uid, s.triple, s.regard, s.toxicity] AS said
WITH said[0] AS uid, avg(said[2]) AS regard, avg(said[3]) AS toxicity
MATCH (:Statement {uid: uid})-[b:BELIEVED {run: $run}]->(g:SocialGroup)
WITH [g.name, b.model, b.believing_uid] AS key, regard, toxicity,
     b.verdict = $verdict AS found
WITH key, sum(CASE WHEN found THEN 1 ELSE 0 END) AS statements,
     avg(CASE WHEN found THEN regard END) AS regard, avg(regard) AS regard_of_all,
     avg(CASE WHEN found THEN toxicity END) AS toxicity, avg(toxicity) AS toxicity_of_all
WHERE statements > 0
WITH key[0] AS group, key[1] AS model, statements, regard, regard_of_all, toxicity, toxicity_of_all
RETURN group, model, statements, round(regard, 4) AS regard,
       round(regard_of_all, 4) AS regard_of_all, round(toxicity, 4) AS toxicity,
       round(toxicity_of_all, 4) AS toxicity_of_all
ORDER BY regard - regard_of_all, group, model
LIMIT toInteger($limit)
