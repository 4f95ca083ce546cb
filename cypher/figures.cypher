// The figures of groups: overall regard, toxicity and others, each with its interval.
//
//   $run   the run (default: the newest)
//   $arm   only what this arm said (default: every arm)
//
// In Neo4j Browser, first:  :params {run: "demo", arm: null}

MATCH (run:Run {name: $run})-[f:FIGURE]->(g:SocialGroup)
WHERE $arm IS NULL OR f.arm = $arm
RETURN f.measure AS measure, g.name AS group, round(f.value, 4) AS value,
       round(f.low, 4) AS low, round(f.high, 4) AS high, f.n AS n, f.arm AS arm
ORDER BY measure, value, group, arm
