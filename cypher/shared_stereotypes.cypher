// The statements that a model finds as likely of one group as of another: those of the lowest Delta
// Disparity Score of each model, with the groups that they are likeliest of by PPL* (needs kgbias
// probe).
//
//   $probes      only this set of probes, by name (default: "")
//   $min_dds     DDS at least, to see the other end (default: 0.0)
//   $limit       rows at most (default: 25)
//
// In Neo4j Browser, first:  :params {probes: "", min_dds: 0.0, limit: 25}

MATCH (p:ProbeSet)<-[:ON]-(r:SofaResult)-[d:DISPARITY]->(s:Statement)
WHERE ($probes = "" OR p.name = $probes) AND d.dds >= $min_dds
RETURN d.category AS category, s.text AS statement, r.model AS model, round(d.dds, 4) AS dds,
       round(d.variance, 4) AS variance, d.first AS first
ORDER BY dds, category, statement, model
LIMIT toInteger($limit)
