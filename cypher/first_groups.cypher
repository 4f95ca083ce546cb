// Groups by how often they make a statement the likeliest: by PPL* (first: the paper's top-1), and
// by the measure of the probing (likeliest), as shares of the statements (needs kgbias probe).
//
//   $probes   only this set of probes, by name (default: "")
//   $limit    rows at most (default: 50)
//
// In Neo4j Browser, first:  :params {probes: "", limit: 50}

MATCH (p:ProbeSet)<-[:ON]-(r:SofaResult)-[f:PUTS_FIRST]->(g:SocialGroup)
WHERE $probes = "" OR p.name = $probes
RETURN f.category AS category, g.name AS group, r.model AS model, round(f.first, 4) AS first,
       round(f.low, 4) AS low, round(f.high, 4) AS high, round(f.likeliest, 4) AS likeliest,
       f.n AS n
ORDER BY first DESC, category, group, model
LIMIT toInteger($limit)
