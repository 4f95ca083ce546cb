// How many prompts a run asked about each group, and the percentage of them that was refused at the
// first attempt: a prompt that was asked several times counts once, by its share of refusals.
// Failed requests are left out.
//
//   $run   the run (default: the newest)
//   $arm   only what this arm asked (default: every arm)
//
// In Neo4j Browser, first:  :params {run: "demo", arm: null}

CALL () {
    MATCH (n:Generation)-[:IN]->(:Run {name: $run})
    RETURN n.group_uid AS group_uid, n.arm AS arm, n.strategy AS strategy,
           n.template_hash AS template, n.prompt AS prompt, n.attempt AS attempt,
           n.outcome AS outcome, count(*) AS answers
}
WITH * WHERE ($arm IS NULL OR arm = $arm) AND strategy <> 'reading'
         AND attempt = 0 AND outcome <> 'failed'
WITH [group_uid, arm, strategy, template, prompt] AS asked, sum(answers) AS answers,
     sum(CASE outcome WHEN 'refused' THEN answers ELSE 0 END) AS refused
WITH asked[0] AS group_uid, sum(CASE asked[4] WHEN '' THEN answers ELSE 1 END) AS prompts,
     sum(CASE asked[4] WHEN '' THEN 1.0 * refused ELSE 1.0 * refused / answers END) AS shares
WITH group_uid, prompts, shares / prompts AS share
MATCH (g:SocialGroup {uid: group_uid})
RETURN g.name AS group, prompts, round(1000 * share) / 10 AS refused_percent
ORDER BY group
