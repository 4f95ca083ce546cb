// Groups by effect size: the association tests of each group, the strongest first
// (needs kgbias associate).
//
// side: x or y where the group is a target of the test, a or b where it is an attribute. n: target
// words in both sets. p_value is that of the permutation test, p_holm and p_bh the same, corrected
// for the tests of its call; p_published is that of the method's paper where it is another (CEAT's
// is no test of association). Tests with fewer words a side than asked for are left out, for with
// one word d is always 1.4142 or -1.4142, and scores without a p-value (MAC ...), which are no d.
//
//   $min_words     target words a side at least (default: 8)
//   $limit         rows at most (default: 50)
//
// In Neo4j Browser, first:  :params {min_words: 8, limit: 50}

MATCH (t:AssociationTest)-[e:TARGET|ATTRIBUTE]->(g:SocialGroup)
WHERE t.effect_size IS NOT NULL AND t.p_value IS NOT NULL
  AND t.n_x >= toInteger($min_words) AND t.n_y >= toInteger($min_words)
RETURN g.name AS group, e.side AS side, t.name AS test, t.method AS method, t.model AS model,
       t.n_x + t.n_y AS n, round(t.effect_size, 4) AS effect_size, t.p_value AS p_value,
       t.p_holm AS p_holm, t.p_bh AS p_bh, t.p_published AS p_published
ORDER BY abs(t.effect_size) DESC, group, side, test, method, model
LIMIT toInteger($limit)
