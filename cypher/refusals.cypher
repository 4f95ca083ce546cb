// How a group's prompts ended: statements, refusals, unparsable answers, echoes, nonsense and
// failures.
//
//   $run   the run (default: the newest)
//   $arm   only what this arm said (default: every arm)
//
// In Neo4j Browser, first:  :params {run: "demo", arm: null}

MATCH (n:Generation)-[:IN]->(run:Run {name: $run})
WHERE $arm IS NULL OR n.arm = $arm
MATCH (g:SocialGroup {uid: n.group_uid})
RETURN g.name AS group, count(n) AS answers,
       sum(CASE n.outcome WHEN 'ok' THEN 1 ELSE 0 END) AS statements,
       sum(CASE n.outcome WHEN 'refused' THEN 1 ELSE 0 END) AS refused,
       sum(CASE n.outcome WHEN 'unparsable' THEN 1 ELSE 0 END) AS unparsable,
       sum(CASE n.outcome WHEN 'echo' THEN 1 ELSE 0 END) AS echoes,
       sum(CASE n.outcome WHEN 'nonsense' THEN 1 ELSE 0 END) AS nonsense,
       sum(CASE n.outcome WHEN 'failed' THEN 1 ELSE 0 END) AS failed, n.arm AS arm
ORDER BY group, arm
