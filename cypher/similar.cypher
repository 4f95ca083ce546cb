// What a model said about a topic: first the statements that share a word of it, in any form; then those
// that say it in other words, the nearest by meaning first (similar in topic, not always in stance).
// At most 100 statements of the run are found by words, and 100 by meaning.
//
//   $about               words, or a statement
//   $run                 the run (default: the newest)
//   $arm                 only what this arm said (default: every arm)
//   $min_acceptability   only statements that make at least this much sense (default: 0.5)
//   $limit               rows at most (default: 25)
//
// In Neo4j Browser, which cannot read words, $about is what kgbias makes of them: uids of triples, each
// with its cosine and "words" or "meaning". First:
//   :params {about: "0f6c2a 0.712 words", run: "demo", arm: null, min_acceptability: 0.5, limit: 25}

WITH [entry IN split($about, ",") | split(entry, " ")] AS near
WITH near, [entry IN near | entry[0]] AS triples
MATCH (g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(o:Object)
WHERE s.triple IN triples AND ($arm IS NULL OR s.arm = $arm)
      AND coalesce(s.acceptability, 1.0) >= $min_acceptability
WITH g, s, o, head([entry IN near WHERE entry[0] = s.triple]) AS entry
RETURN g.name AS group, s.predicate AS predicate, o.text AS object, s.count AS count,
       "by " + entry[2] AS found, toFloat(entry[1]) AS cosine, s.arm AS arm
ORDER BY found DESC, cosine DESC, predicate, object, group, arm
LIMIT toInteger($limit)
