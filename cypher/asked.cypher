// What was asked in a run and how it ended, in one row: prompts, first attempts at them, attempts
// after these, those of them because the prompt was refused, and answers by their outcome. What a
// model answered that read stories is left out. After each refusal but those that ended a place,
// another attempt was made.
//
//   $run   the run (default: the newest)
//   $arm   only what this arm said (default: every arm)
//
// In Neo4j Browser, first:  :params {run: "demo", arm: null}

MATCH (n:Generation)-[:IN]->(:Run {name: $run})
WHERE ($arm IS NULL OR n.arm = $arm) AND n.strategy <> 'reading'
WITH count(DISTINCT [n.group_uid, n.arm, n.strategy, n.template_hash, CASE n.prompt WHEN '' THEN n.path ELSE n.prompt END]) AS prompts,
     sum(CASE n.attempt WHEN 0 THEN 1 ELSE 0 END) AS first, count(*) AS answers,
     sum(CASE n.outcome WHEN 'ok' THEN 1 ELSE 0 END) AS statements,
     sum(CASE n.outcome WHEN 'refused' THEN 1 ELSE 0 END) AS refused,
     sum(CASE n.outcome WHEN 'unparsable' THEN 1 ELSE 0 END) AS unparsable,
     sum(CASE n.outcome WHEN 'echo' THEN 1 ELSE 0 END) AS echoes,
     sum(CASE n.outcome WHEN 'nonsense' THEN 1 ELSE 0 END) AS nonsense,
     sum(CASE n.outcome WHEN 'failed' THEN 1 ELSE 0 END) AS failed
OPTIONAL MATCH (n:Generation)-[:IN]->(:Run {name: $run})
WHERE ($arm IS NULL OR n.arm = $arm) AND n.strategy <> 'reading' AND (n.outcome = 'refused' OR n.attempt > 0)
WITH prompts, first, answers, statements, refused, unparsable, echoes, nonsense, failed,
     [n.group_uid, n.arm, n.strategy, n.template_hash, CASE n.prompt WHEN '' THEN n.path ELSE n.prompt END, split(n.path, '#')[0]] AS place,
     max(n.attempt) AS last, max(CASE n.outcome WHEN 'refused' THEN n.attempt ELSE -1 END) AS last_refused
RETURN prompts, first, answers - first AS again,
       refused - sum(CASE last_refused WHEN last THEN 1 ELSE 0 END) AS after_refusal, answers,
       statements, refused, unparsable, echoes, nonsense, failed
