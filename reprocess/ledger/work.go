package ledger

// Conditions under which a row r needs an agent.
const (
	// NeedsController selects the newest deployment of a version that has not ended.
	NeedsController = `EXISTS (SELECT 1 FROM kappactl.version v WHERE v.job = r.job AND v.number = r.number AND v.ended_at IS NULL)
		AND NOT EXISTS (SELECT 1 FROM kappactl.deployment n WHERE n.job = r.job AND n.number = r.number AND n.id > r.id)`
	// NeedsAnswer selects a request without an answer that is about neither the batch layer nor an experiment.
	NeedsAnswer = `r.answered_at IS NULL AND NOT ` + ofBatch + ` AND NOT ` + ofExperiment
	// NeedsBatch selects one that is.
	NeedsBatch = `r.answered_at IS NULL AND ` + ofBatch
	// NeedsExperiment selects one that is about an experiment.
	NeedsExperiment = `r.answered_at IS NULL AND ` + ofExperiment

	ofExperiment = `r.verb LIKE 'ab\_%'`

	ofBatch = `r.verb IN ('batch_run', 'batch_cancel', 'batch_rollback')`
)
