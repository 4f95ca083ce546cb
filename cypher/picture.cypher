// A group and what a model said of it, as a picture: nodes and edges for Neo4j Browser.
//
//   $group   the group's name
//   $run     the run (default: the newest)
//   $limit   edges at most (default: 40)
//
// In Neo4j Browser, first:  :params {group: "Women", run: "demo", limit: 40}

MATCH p = (g:SocialGroup {name: $group})-[s:STEREOTYPE {run: $run}]->(o:Object)
WITH p, s, o
ORDER BY s.count DESC, s.predicate, o.text
LIMIT toInteger($limit)
RETURN p AS statement
