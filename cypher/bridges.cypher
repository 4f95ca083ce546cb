// The objects that bridge groups: named for the most groups, with these groups.
//
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $limit               rows at most (default: 25)
//
// In Neo4j Browser, first:  :params {run: "demo", arm: null, min_acceptability: 0.5, limit: 25}

MATCH (g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(o:Object)
WHERE ($arm IS NULL OR s.arm = $arm)
      AND coalesce(s.acceptability, 1.0) >= $min_acceptability
WITH o.uid AS uid, o.text AS object, s.arm AS arm, sum(s.count) AS count,
     count(DISTINCT g) AS groups
WHERE groups > 1
WITH uid, object, arm, count, groups
ORDER BY groups DESC, count DESC, object, arm
LIMIT toInteger($limit)
MATCH (:Object {uid: uid})<-[t:STEREOTYPE {run: $run}]-(h:SocialGroup)
WHERE t.arm = arm AND coalesce(t.acceptability, 1.0) >= $min_acceptability
WITH object, arm, count, groups, h.name AS name ORDER BY name
WITH object, arm, count, groups, collect(DISTINCT name) AS names
RETURN object, groups, count, names, arm
ORDER BY groups DESC, count DESC, object, arm
