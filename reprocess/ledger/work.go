package ledger

// Conditions under which a row r needs an agent.
const (
	// NeedsController selects the newest deployment of a version that has not ended.
	NeedsController = `EXISTS (SELECT 1 FROM kappactl.version v WHERE v.job = r.job AND v.number = r.number AND v.ended_at IS NULL)
		AND NOT EXISTS (SELECT 1 FROM kappactl.deployment n WHERE n.job = r.job AND n.number = r.number AND n.id > r.id)`
	// NeedsAnswer selects a request without an answer that is not about the batch layer.
	NeedsAnswer = `r.answered_at IS NULL AND NOT ` + ofBatch
	// NeedsBatch selects one that is.
	NeedsBatch = `r.answered_at IS NULL AND ` + ofBatch

	ofBatch = `r.verb IN ('batch_run', 'batch_cancel', 'batch_rollback')`
)
