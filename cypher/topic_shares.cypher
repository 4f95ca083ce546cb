// Topic shares: of a group's statements, which part is about each topic (needs kgbias
// measure --topics).
//
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $limit               rows at most (default: 100)
//
// In Neo4j Browser, first:  :params {run: "demo", arm: null, min_acceptability: 0.5, limit: 100}

MATCH ()-[any:ABOUT {run: $run}]->()
WITH any LIMIT 1
MATCH (g:SocialGroup)
CALL (g) {
    MATCH (g)-[s:STEREOTYPE {run: $run}]->()
    WHERE ($arm IS NULL OR s.arm = $arm)
          AND coalesce(s.acceptability, 1.0) >= $min_acceptability
    WITH s.arm AS arm, s.count AS count, s.triple AS triple
    MATCH (:Triple {uid: triple})-[:ABOUT {run: $run}]->(topic)
    WITH arm, topic.uid AS uid, topic.name AS topic, sum(count) AS count
    RETURN arm, topic, count
}
WITH g.name AS group, arm, collect({topic: topic, count: count}) AS topics, sum(count) AS total
UNWIND topics AS row
RETURN group, row.topic AS topic, row.count AS count,
       round(1.0 * row.count / total, 4) AS share, arm
ORDER BY group, arm, share DESC, topic
LIMIT toInteger($limit)
