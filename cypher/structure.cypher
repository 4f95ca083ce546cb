// The shape of a run's graph: central groups and objects, their communities, and the objects that
// bridge groups, the most central first (needs kgbias structure).
//
//   $run     the run (default: the newest)
//   $limit   rows at most (default: 25)
//
// In Neo4j Browser, first:  :params {run: "demo", limit: 25}

MATCH (:Run {name: $run})-[p:PLACED]->(g:SocialGroup)
RETURN 'group' AS kind, g.name AS name, p.degree AS degree,
       round(p.betweenness, 4) AS betweenness, p.community AS community, p.groups AS groups
ORDER BY betweenness DESC, degree DESC, name
LIMIT toInteger($limit)
UNION ALL
MATCH (:Run {name: $run})-[p:PLACED]->(o:Object)
WHERE p.groups > 1
RETURN 'object' AS kind, o.text AS name, p.degree AS degree,
       round(p.betweenness, 4) AS betweenness, p.community AS community, p.groups AS groups
ORDER BY betweenness DESC, degree DESC, name
LIMIT toInteger($limit)
