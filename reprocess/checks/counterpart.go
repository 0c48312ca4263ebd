package checks

import (
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// Counterpart is the version with which checks compare the candidate: live before the flip, previous after it.
type Counterpart struct {
	Name    string       // of its view: live or previous
	Version *job.Version // nil: there is none, and a check that needs it returns Outcome and Missing
	// Still selects its rows where no worker writes them, nor those of the candidate: no barrier is needed. nil: the
	// Runner's Views select them.
	Still Views

	Outcome Outcome
	Missing reason.Reason
	// Accepted reports that a person has accepted its absence: "no answer" for that reason does not stop a flip.
	Accepted bool
}

// Without returns the counterpart for the case that there is none: checks that need it return o and why.
func (c Counterpart) Without(o Outcome, why reason.Reason) Counterpart {
	c.Version, c.Outcome, c.Missing = nil, o, why
	return c
}
