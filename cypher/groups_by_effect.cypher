// Groups by effect size: the association tests that target each group, the strongest first
// (needs kgbias associate).
//
//   $limit   rows at most (default: 50)
//
// In Neo4j Browser, first:  :params {limit: 50}

MATCH (test:AssociationTest)-[e:TARGET]->(g:SocialGroup)
WHERE test.effect_size IS NOT NULL
RETURN g.name AS group, e.side AS side, test.name AS test, test.method AS method,
       test.model AS model, round(test.effect_size, 4) AS effect_size,
       round(test.p_value, 4) AS p_value
ORDER BY abs(test.effect_size) DESC, group, side, test, method, model
LIMIT $limit
