// The figures of groups: overall regard, toxicity and others, each with its interval.
//
//   $run     the run (default: the newest)
//
// In Neo4j Browser, first:  :params {run: "demo"}

MATCH (run:Run {name: $run})-[f:FIGURE]->(g:SocialGroup)
RETURN f.measure AS measure, g.name AS group, round(f.value, 4) AS value,
       round(f.low, 4) AS low, round(f.high, 4) AS high, f.n AS n
ORDER BY measure, value, group
