// What is said, believed and negative: statements of the crawl with a low regard whose group the
// model itself finds among the most probable (needs kgbias measure and kgbias probe).
//
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $regard              regard at most (default: -0.3)
//   $rank                rank of the group at most, 1 being the most probable (default: 3)
//   $limit               rows at most (default: 25)
//
// In Neo4j Browser, first:
//   :params {run: "demo", arm: null, min_acceptability: 0.5, regard: -0.3, rank: 3, limit: 25}

MATCH (g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(o:Object)
WHERE s.regard <= $regard AND ($arm IS NULL OR s.arm = $arm)
      AND coalesce(s.acceptability, 1.0) >= $min_acceptability
WITH g, s, o, s.triple AS uid
MATCH (:Triple {uid: uid})-[:STATES]->(:Statement)-[p:PROBED {run: $run}]->(g)
WHERE p.rank <= $rank
RETURN g.name AS group, s.predicate AS predicate, o.text AS object, s.count AS count,
       round(s.regard, 4) AS regard, p.model AS model, p.rank AS rank,
       round(exp(-p.log_likelihood / p.tokens), 4) AS perplexity, s.arm AS arm
ORDER BY s.regard, group, predicate, object, model, arm
LIMIT toInteger($limit)
