package job

// ExitCode is the exit code of a command; the answer to a request carries it.
type ExitCode int

// The exit codes that scripts can rely on.
const (
	ExitOK          ExitCode = 0
	ExitFailed      ExitCode = 1
	ExitUsage       ExitCode = 2
	ExitNotCaughtUp ExitCode = 3
	ExitTimeout     ExitCode = 4
	ExitChecks      ExitCode = 5
	ExitConflict    ExitCode = 6
	ExitGap         ExitCode = 7
	ExitUnhealthy   ExitCode = 8
	ExitRolledBack  ExitCode = 9
	ExitNothing     ExitCode = 10
	ExitUnreachable ExitCode = 11
	ExitInterrupted ExitCode = 130
)

// Refusal is an outcome that a person has to act on: the problem, the next command, and the exit code.
type Refusal struct {
	Code  ExitCode
	Cause string
	Next  string // the next command or step; may be empty
	Err   error  // the chain behind it; may be nil
}

func (r *Refusal) Error() string { return r.Cause }

// Unwrap returns Err.
func (r *Refusal) Unwrap() error { return r.Err }
