package reprocess

// The places where the kill tests end the process (internal/faultpoint).
const (
	FaultDeployCreated   = "deploy.created"   // the version's table is there
	FaultDeployFrozen    = "deploy.frozen"    // the ranges to replay are committed
	FaultDeployFilled    = "deploy.filled"    // the table holds the replay
	FaultDeployIndexed   = "deploy.indexed"   // and its unique index
	FaultDeploySealed    = "deploy.sealed"    // positions stand at the frozen ends
	FaultDeployVerified  = "deploy.verified"  // the checks passed
	FaultPromoteHeld     = "promote.held"     // the barrier is set
	FaultPromoteChecked  = "promote.checked"  // the flip's conditions hold, the transaction is open
	FaultPromoteFlipping = "promote.flipping" // the view is switched, the transaction is open
	FaultPromoteFlipped  = "promote.flipped"  // the flip is committed
	FaultPromoteAnswered = "promote.answered" // who asked has the answer
	FaultCheckNoted      = "check.noted"      // what a check after the flip said is written
	FaultRetireMarked    = "retire.marked"    // the version is retiring
	FaultRetireDropped   = "retire.dropped"   // its table is gone
	FaultDropMarked      = "drop.marked"      // the view is gone, the versions of the job end
	FaultDropCleaned     = "drop.cleaned"     // they have ended
)
