// What each name of a group does to the group's lifts: the mean lift, over the statements that a model
// believes of the group, of the name alone, of the group, and of the group without the name, the
// names that sway it most first (needs kgbias evidence).
//
// A name with a mark (narrower, self-description, slur) is not mixed with the others: without it
// nothing changes.
//
//   $run       the run (default: the newest)
//   $group     the group's name (default: every group)
//   $verdict   believed, leaning, or bound to a word (default: "believed")
//   $limit     rows at most (default: 50)
//
// In Neo4j Browser, first:  :params {run: "demo", group: null, verdict: "believed", limit: 50}

MATCH (g:SocialGroup)<-[of:NAME_OF]-(n)-[each:PROBED_BEFORE {run: $run}]->()
WHERE $group IS NULL OR g.name = $group
WITH g, n, of.mark AS mark, each.believing_uid AS believing, avg(each.mean) AS base
MATCH (n)-[e:PROBED_BEFORE {run: $run}]->(statement)-[b:BELIEVED {run: $run}]->(g)
WHERE e.believing_uid = believing AND b.believing_uid = believing AND b.verdict = $verdict
WITH g, statement, b, collect({name: n, mark: mark, x: e.mean - base}) AS names,
     sum(CASE mark WHEN '' THEN e.mean - base ELSE 0.0 END) AS total,
     sum(CASE mark WHEN '' THEN 1 ELSE 0 END) AS mixed
WHERE mixed > 0
UNWIND names AS own
WITH g.name AS group, b.model AS model, b.believing_uid AS believing, own.name AS n,
     own.mark AS mark, b.lift AS lift,
     b.lift + own.x - total / mixed AS alone,
     CASE WHEN own.mark <> '' OR mixed = 1 THEN b.lift
          ELSE b.lift - total / mixed + (total - own.x) / (mixed - 1) END AS without
WITH group, model, believing, n, mark, count(*) AS statements, avg(alone) AS alone, avg(lift) AS lift,
     avg(without) AS without
RETURN group, n.text AS name, n.form AS form, mark, statements, round(alone, 4) AS alone,
       round(lift, 4) AS lift, round(without, 4) AS without, model
ORDER BY group, abs(lift - without) DESC, name, model
LIMIT toInteger($limit)
