package job

// Phase is the phase of a version's life. reprocess/ledger defines which phase follows which.
type Phase string

// The phases of a version, in order, then the two side ends.
const (
	Staged     Phase = "staged"
	Replaying  Phase = "replaying"
	Building   Phase = "building"
	CatchingUp Phase = "catching_up"
	CaughtUp   Phase = "caught_up"
	Verified   Phase = "verified"
	Live       Phase = "live"
	Standby    Phase = "standby"
	Retiring   Phase = "retiring"
	Retired    Phase = "retired"
	Aborted    Phase = "aborted"
	Failed     Phase = "failed"
)

// Phases lists every Phase.
func Phases() []Phase {
	return []Phase{
		Staged, Replaying, Building, CatchingUp, CaughtUp, Verified, Live, Standby, Retiring, Retired, Aborted, Failed,
	}
}

// Ended reports whether this phase is final.
func (p Phase) Ended() bool { return p == Retired || p == Aborted || p == Failed }

// Consumes reports whether a version in this phase follows its topics live.
func (p Phase) Consumes() bool {
	return p == CatchingUp || p == CaughtUp || p == Verified || p == Live || p == Standby
}

// DeploymentState is the state of one deployment.
type DeploymentState string

// The states of a deployment; the last five are its ends.
const (
	RollingOut    DeploymentState = "rolling_out"
	Waiting       DeploymentState = "waiting"
	Observing     DeploymentState = "observing"
	Settled       DeploymentState = "settled"
	RolledBack    DeploymentState = "rolled_back"
	DeployAborted DeploymentState = "aborted"
	DeployFailed  DeploymentState = "failed"
	Superseded    DeploymentState = "superseded"
)

// DeploymentStates lists every DeploymentState.
func DeploymentStates() []DeploymentState {
	return []DeploymentState{RollingOut, Waiting, Observing, Settled, RolledBack, DeployAborted, DeployFailed, Superseded}
}

// Ended reports whether this state is final.
func (s DeploymentState) Ended() bool {
	return s == Settled || s == RolledBack || s == DeployAborted || s == DeployFailed || s == Superseded
}

// Verdict tells whether a version, or one partition of it, is ready, or why not.
type Verdict string

// The verdicts; the first that matches wins, in this order.
const (
	Unknown         Verdict = "unknown"
	Unhealthy       Verdict = "unhealthy"
	Starting        Verdict = "starting"
	BlockedByTxn    Verdict = "blocked_by_open_transaction"
	Stalled         Verdict = "stalled"
	ReplayingRanges Verdict = "replaying"
	NotConverging   Verdict = "not_converging"
	Lagging         Verdict = "lagging"
	Holding         Verdict = "holding"
	Ready           Verdict = "ready"
)

// Verdicts lists every Verdict in the order in which they win.
func Verdicts() []Verdict {
	return []Verdict{
		Unknown, Unhealthy, Starting, BlockedByTxn, Stalled, ReplayingRanges, NotConverging, Lagging,
		Holding, Ready,
	}
}
