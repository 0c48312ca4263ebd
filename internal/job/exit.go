package job

// ExitCode is what a command ends with and what the answer to a request carries.
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

// Refusal is an outcome that a person has to act on: what is wrong, what to run next, and the exit code.
type Refusal struct {
	Code  ExitCode
	Cause string
	Next  string // the next command or step; may be empty
	Err   error  // the chain behind it; may be nil
}

func (r *Refusal) Error() string { return r.Cause }

// Unwrap gives the chain behind the refusal.
func (r *Refusal) Unwrap() error { return r.Err }
