// Descriptors that a model ties to the names of groups, by APX (needs kgbias probe apx --store).
//
// z: how far below the descriptor's mean over groups the group lies, in standard deviations. of:
// groups that were compared.
//
//   $group   only this group (default: every group)
//   $limit   rows at most (default: 50)
//
// In Neo4j Browser, first:  :params {group: null, limit: 50}

MATCH (g:SocialGroup)-[f:FLAGGED]->(d:Descriptor)
WHERE $group IS NULL OR g.name = $group
RETURN f.model AS model, g.name AS group, d.text AS descriptor, d.axis AS axis,
       round(f.z, 4) AS z, round(f.bias_score, 4) AS bias_score, f.groups AS of
ORDER BY model, group, f.z, descriptor
LIMIT toInteger($limit)
