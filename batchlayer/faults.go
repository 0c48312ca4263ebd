package batchlayer

// The places where the kill tests end the process (internal/faultpoint).
const (
	FaultBatchRotated  = "batch.rotated"  // the epoch and the generation are committed
	FaultBatchBegun    = "batch.begun"    // its segments are open
	FaultBatchRead     = "batch.read"     // they are done
	FaultBatchFilled   = "batch.filled"   // its table holds the results
	FaultBatchIndexed  = "batch.indexed"  // and its indexes
	FaultBatchCompared = "batch.compared" // it may be shown
	FaultBatchAttached = "batch.attached" // it is a partition of the batch table
	FaultBatchShowing  = "batch.showing"  // the pointer is moved, the transaction is open
	FaultBatchShown    = "batch.shown"    // readers see it
	FaultBatchRetired  = "batch.retired"  // an old generation is retired
	FaultBatchDetached = "batch.detached" // and out of the batch table
	FaultBatchDropped  = "batch.dropped"  // and its table is gone
)
