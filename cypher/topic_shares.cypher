// Topic shares: of a group's statements, which part is about each topic.
//
//   $run     the run (default: the newest)
//   $limit   rows at most (default: 100)
//
// In Neo4j Browser, first:  :params {run: "demo", limit: 100}

MATCH (g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(o:Object)
WITH g, s, s.triple AS uid
MATCH (:Triple {uid: uid})-[:ABOUT {run: $run}]->(topic:Topic)
WITH g.name AS group, topic, sum(s.count) AS count
WITH group, collect({topic: topic.name, count: count}) AS topics, sum(count) AS total
UNWIND topics AS row
RETURN group, row.topic AS topic, row.count AS count,
       round(1.0 * row.count / total, 4) AS share
ORDER BY group, share DESC, topic
LIMIT toInteger($limit)
