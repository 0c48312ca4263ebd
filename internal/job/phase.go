package job

// Phase is where a version stands in its life. Which phase follows which is reprocess.Next.
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

// Ended says that nothing follows this phase.
func (p Phase) Ended() bool { return p == Retired || p == Aborted || p == Failed }

// Consumes says that a version in this phase follows its topics live.
func (p Phase) Consumes() bool {
	return p == CatchingUp || p == CaughtUp || p == Verified || p == Live || p == Standby
}

// DeploymentState is where one roll-out stands.
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

// Ended says that nothing follows this state.
func (s DeploymentState) Ended() bool {
	return s == Settled || s == RolledBack || s == DeployAborted || s == DeployFailed || s == Superseded
}

// Verdict is why a version, or one partition of it, is or is not ready.
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
	return []Verdict{Unknown, Unhealthy, Starting, BlockedByTxn, Stalled, ReplayingRanges, NotConverging, Lagging, Holding, Ready}
}
