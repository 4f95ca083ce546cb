// Groups by effect size: the association tests that target each group, the strongest first
// (needs kgbias associate).
//
//   $limit   rows at most (default: 50)
//
// In Neo4j Browser, first:  :params {limit: 50}

MATCH (t:AssociationTest)-[e:TARGET]->(g:SocialGroup)
WHERE t.effect_size IS NOT NULL
RETURN g.name AS group, e.side AS side, t.name AS test, t.method AS method,
       t.model AS model, round(t.effect_size, 4) AS effect_size,
       round(t.p_value, 4) AS p_value
ORDER BY abs(t.effect_size) DESC, group, side, test, method, model
LIMIT toInteger($limit)
