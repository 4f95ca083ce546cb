// Lineage of a statement: which generations yielded it, with which prompt, what the model answered,
// and which statements it had been shown.
//
//   $group       the group's name
//   $predicate   the predicate
//   $object      the object
//   $limit       rows at most (default: 25)
//
// In Neo4j Browser, first:
//   :params {group: "Women", predicate: "love", object: "to sing", limit: 25}

MATCH (:SocialGroup {name: $group})<-[:SUBJECT]-(t:Triple)-[:OBJECT]->(:Object {text: $object})
MATCH (t)-[:PREDICATE]->(:Predicate {text: $predicate})
MATCH (n:Generation)-[:YIELDED]->(t)
MATCH (n)-[:IN]->(run:Run)
OPTIONAL MATCH (answer:Answer {key: n.answer_key})
OPTIONAL MATCH (n)-[shown:SHOWN]->(example:Triple)
WITH run, n, answer, shown, example ORDER BY shown.position
WITH run, n, answer, collect(example.text) AS shown
RETURN run.name AS run, n.strategy AS strategy, n.iteration AS iteration, n.attempt AS attempt,
       n.template AS template, n.prompt AS prompt, answer.text AS answer, shown
ORDER BY run, iteration, n.path
LIMIT toInteger($limit)
