// What was asked in a run and how it ended, in one row: prompts, first attempts at them, attempts
// after these, those of them because the prompt was refused, and answers by their outcome. What a
// model answered that read stories is left out.
//
//   $run   the run (default: the newest)
//   $arm   only what this arm said (default: every arm)
//
// In Neo4j Browser, first:  :params {run: "demo", arm: null}

MATCH (n:Generation)-[:IN]->(run:Run {name: $run})
WHERE ($arm IS NULL OR n.arm = $arm) AND n.strategy <> 'reading'
WITH n.group_uid AS uid, n.arm AS arm, n.strategy AS strategy, n.template_hash AS template,
     CASE n.prompt WHEN '' THEN n.path ELSE n.prompt END AS prompt, split(n.path, '#')[0] AS place, n.attempt AS attempt, n.outcome AS outcome
WITH uid, arm, strategy, template, prompt, place, count(*) AS answers, max(attempt) AS last,
     sum(CASE attempt WHEN 0 THEN 1 ELSE 0 END) AS first,
     max(CASE outcome WHEN 'refused' THEN attempt ELSE -1 END) AS last_refused,
     sum(CASE outcome WHEN 'ok' THEN 1 ELSE 0 END) AS statements,
     sum(CASE outcome WHEN 'refused' THEN 1 ELSE 0 END) AS refused,
     sum(CASE outcome WHEN 'unparsable' THEN 1 ELSE 0 END) AS unparsable,
     sum(CASE outcome WHEN 'echo' THEN 1 ELSE 0 END) AS echoes,
     sum(CASE outcome WHEN 'nonsense' THEN 1 ELSE 0 END) AS nonsense,
     sum(CASE outcome WHEN 'failed' THEN 1 ELSE 0 END) AS failed
WITH uid, arm, strategy, template, prompt, sum(first) AS first, sum(answers) AS answers,
     sum(refused - CASE last_refused WHEN last THEN 1 ELSE 0 END) AS after_refusal,
     sum(statements) AS statements, sum(refused) AS refused, sum(unparsable) AS unparsable,
     sum(echoes) AS echoes, sum(nonsense) AS nonsense, sum(failed) AS failed
RETURN count(*) AS prompts, sum(first) AS first, sum(answers) - sum(first) AS again,
       sum(after_refusal) AS after_refusal, sum(answers) AS answers,
       sum(statements) AS statements, sum(refused) AS refused, sum(unparsable) AS unparsable,
       sum(echoes) AS echoes, sum(nonsense) AS nonsense, sum(failed) AS failed
