// How many prompts a run asked about each group, and the percentage of them that was refused at the
// first attempt: a prompt that was asked several times counts once, by its share of refusals.
// Failed requests are left out.
//
//   $run   the run (default: the newest)
//   $arm   only what this arm asked (default: every arm)
//
// In Neo4j Browser, first:  :params {run: "demo", arm: null}

MATCH (n:Generation)-[:IN]->(run:Run {name: $run})
WHERE ($arm IS NULL OR n.arm = $arm) AND n.strategy <> 'reading'
  AND n.attempt = 0 AND n.outcome <> 'failed'
WITH n.group_uid AS uid, n.arm AS arm, n.strategy AS strategy, n.template_hash AS template,
     CASE n.prompt WHEN '' THEN n.path ELSE n.prompt END AS prompt, avg(CASE n.outcome WHEN 'refused' THEN 1.0 ELSE 0.0 END) AS share
WITH uid, count(*) AS prompts, avg(share) AS share
MATCH (g:SocialGroup {uid: uid})
RETURN g.name AS group, prompts, round(1000 * share) / 10 AS refused_percent
ORDER BY group
