// The objects that bridge groups: named for the most groups, with these groups.
//
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $limit               rows at most (default: 25)
//
// In Neo4j Browser, first:  :params {run: "demo", arm: null, min_acceptability: 0.5, limit: 25}

MATCH (o:Object)
WHERE COUNT { (o)<-[:STEREOTYPE]-() } > 1
CALL (o) {
    MATCH (o)<-[s:STEREOTYPE {run: $run}]-(g:SocialGroup)
    WHERE ($arm IS NULL OR s.arm = $arm)
          AND coalesce(s.acceptability, 1.0) >= $min_acceptability
    WITH s.arm AS arm, sum(s.count) AS count, count(DISTINCT g.uid) AS groups
    WHERE groups > 1
    RETURN arm, count, groups
}
WITH o, o.text AS object, groups, count, arm
ORDER BY groups DESC, count DESC, object, arm
LIMIT toInteger($limit)
MATCH (o)<-[s:STEREOTYPE {run: $run}]-(g)
WHERE s.arm = arm AND coalesce(s.acceptability, 1.0) >= $min_acceptability
WITH object, groups, count, g.name AS name, arm ORDER BY name
RETURN object, groups, count, collect(DISTINCT name) AS names, arm
ORDER BY groups DESC, count DESC, object, arm
