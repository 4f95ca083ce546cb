// What was asked in a run and how it ended, in one row: prompts, first attempts at them, attempts
// after these, those of them because the prompt was refused, and answers by their outcome. What a
// model answered that read stories is left out. After each refusal but those that ended a place,
// another attempt was made.
//
//   $run   the run (default: the newest)
//   $arm   only what this arm said (default: every arm)
//
// In Neo4j Browser, first:  :params {run: "demo", arm: null}

CALL () {
    MATCH (n:Generation)-[:IN]->(:Run {name: $run})
    RETURN n.group_uid AS group_uid, n.arm AS arm, n.strategy AS strategy,
           n.template_hash AS template, n.prompt AS prompt, n.attempt AS attempt,
           n.outcome AS outcome, count(*) AS answers
}
WITH * WHERE ($arm IS NULL OR arm = $arm) AND strategy <> 'reading'
WITH [group_uid, arm, strategy, template, prompt] AS asked, sum(answers) AS answers,
     sum(CASE attempt WHEN 0 THEN answers ELSE 0 END) AS first,
     sum(CASE outcome WHEN 'ok' THEN answers ELSE 0 END) AS statements,
     sum(CASE outcome WHEN 'refused' THEN answers ELSE 0 END) AS refused,
     sum(CASE outcome WHEN 'unparsable' THEN answers ELSE 0 END) AS unparsable,
     sum(CASE outcome WHEN 'echo' THEN answers ELSE 0 END) AS echoes,
     sum(CASE outcome WHEN 'nonsense' THEN answers ELSE 0 END) AS nonsense,
     sum(CASE outcome WHEN 'failed' THEN answers ELSE 0 END) AS failed
WITH sum(CASE asked[4] WHEN '' THEN answers ELSE 1 END) AS prompts, sum(first) AS first,
     sum(answers) AS answers, sum(statements) AS statements, sum(refused) AS refused,
     sum(unparsable) AS unparsable, sum(echoes) AS echoes, sum(nonsense) AS nonsense,
     sum(failed) AS failed
CALL () {
    MATCH (n:Generation)-[:IN]->(:Run {name: $run})
    WHERE ($arm IS NULL OR n.arm = $arm) AND n.strategy <> 'reading'
          AND (n.outcome = 'refused' OR n.attempt > 0)
    WITH [n.group_uid, n.arm, n.strategy, n.template_hash,
          CASE n.prompt WHEN '' THEN n.path ELSE n.prompt END, split(n.path, '#')[0]] AS place,
         max(n.attempt) AS last,
         max(CASE n.outcome WHEN 'refused' THEN n.attempt ELSE -1 END) AS last_refused
    RETURN sum(CASE last_refused WHEN last THEN 1 ELSE 0 END) AS ended
}
RETURN prompts, first, answers - first AS again, refused - ended AS after_refusal, answers,
       statements, refused, unparsable, echoes, nonsense, failed
