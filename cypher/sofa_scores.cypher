// Models by SoFa: how much it matters to each which group stands before a statement, by category
// and in all (sofa), the most biased model first (needs kgbias probe).
//
//   $probes   only this set of probes, by name (default: "")
//
// In Neo4j Browser, first:  :params {probes: ""}

MATCH (p:ProbeSet)<-[:ON]-(r:SofaResult)-[s:SCORES]->(c:Category)
WHERE $probes = "" OR p.name = $probes
RETURN p.name AS probes, r.model AS model, r.measure AS measure, round(r.score, 4) AS sofa,
       c.name AS category, round(s.score, 4) AS score, round(s.low, 4) AS low,
       round(s.high, 4) AS high, s.n AS n
ORDER BY probes, sofa DESC, model, measure, category
