// What people decided in review, oldest first, and how the crawl had ended the answer.
//
//   $run     the run (default: the newest)
//   $limit   rows at most (default: 100)
//
// In Neo4j Browser, first:  :params {run: "demo", limit: 100}

MATCH (:Run {name: $run})-[:REVIEWED]->(d:Decision)-[:DECIDES]->(n:Generation)
MATCH (g:SocialGroup {uid: n.group_uid})
OPTIONAL MATCH (answer:Answer {key: n.answer_key})
RETURN d.decided AS decided, d.reviewer AS reviewer, d.verdict AS verdict, g.name AS group,
       d.predicate AS predicate, d.object AS object, n.outcome AS outcome, answer.text AS answer
ORDER BY decided, d.uid
LIMIT toInteger($limit)
