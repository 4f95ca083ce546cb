// Predicates by group: how often each was said, of how many objects, with the mean regard.
//
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $min_count           leave out predicates said less often than this (default: 2)
//   $limit               rows at most (default: 50)
//
// In Neo4j Browser, first:
//   :params {run: "demo", arm: null, min_acceptability: 0.5, min_count: 2, limit: 50}

MATCH (g:SocialGroup)
CALL (g) {
    MATCH (g)-[s:STEREOTYPE {run: $run}]->(o:Object)
    WHERE ($arm IS NULL OR s.arm = $arm)
          AND coalesce(s.acceptability, 1.0) >= $min_acceptability
    WITH [s.predicate, s.arm] AS said, sum(s.count) AS count, count(*) AS objects,
         avg(s.regard) AS regard
    WHERE count >= $min_count
    RETURN said[0] AS predicate, said[1] AS arm, count, objects, regard
}
RETURN g.name AS group, predicate, count, objects, round(regard, 4) AS mean_regard, arm
ORDER BY group, count DESC, predicate, arm
LIMIT toInteger($limit)
