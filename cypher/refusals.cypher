// How a group's prompts ended: statements, refusals, unparsable answers, echoes, nonsense and
// failures. What a model answered that read stories is left out.
//
//   $run   the run (default: the newest)
//   $arm   only what this arm said (default: every arm)
//
// In Neo4j Browser, first:  :params {run: "demo", arm: null}

MATCH (n:Generation)-[:IN]->(run:Run {name: $run})
WHERE ($arm IS NULL OR n.arm = $arm) AND n.strategy <> 'reading'
WITH n.group_uid AS uid, n.outcome AS outcome, n.arm AS arm
WITH uid, outcome, arm, count(*) AS times
MATCH (g:SocialGroup {uid: uid})
RETURN g.name AS group, sum(times) AS answers,
       sum(CASE outcome WHEN 'ok' THEN times ELSE 0 END) AS statements,
       sum(CASE outcome WHEN 'refused' THEN times ELSE 0 END) AS refused,
       sum(CASE outcome WHEN 'unparsable' THEN times ELSE 0 END) AS unparsable,
       sum(CASE outcome WHEN 'echo' THEN times ELSE 0 END) AS echoes,
       sum(CASE outcome WHEN 'nonsense' THEN times ELSE 0 END) AS nonsense,
       sum(CASE outcome WHEN 'failed' THEN times ELSE 0 END) AS failed, arm
ORDER BY group, arm
