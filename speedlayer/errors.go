package speedlayer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// ErrSealed is a step of a replay asked for after the replay was sealed: another controller got ahead.
var ErrSealed = errors.New("the replay is already sealed")

// HeldError means that a barrier cannot be set because another one is in place.
type HeldError struct {
	Ref   job.Ref
	By    string
	Until time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("positions of %s are held by %s until %s", e.Ref, e.By, e.Until.UTC().Format(time.RFC3339))
}

// IncompleteError is a replay whose staged rows cannot be trusted to be all of it; filling the table was refused.
type IncompleteError struct {
	Ref    job.Ref
	Detail []string // at most ten
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("the replay of %s is not complete: %s", e.Ref, strings.Join(e.Detail, "; "))
}

// stopped is a part of the work that cannot go on: the fault that is written down for it.
type stopped struct {
	partition job.Partition
	fault     job.Fault
}

func (e *stopped) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.partition, e.fault.Kind, e.fault.Detail)
}

// errNoVersion is a version that is not there.
var errNoVersion = errors.New("no such version")

// errFenced is a write that changed nothing because the claim was lost.
var errFenced = errors.New("the claim was lost to another worker")

// errUntaken ends the context of a COPY that is given up.
var errUntaken = errors.New("PostgreSQL did not take the rows of a COPY in time")

// untakenError is such a COPY. As with any other statement that did not end in time, the server may be gone, or less at
// once may pass.
type untakenError struct {
	within time.Duration
	err    error // of the connection: how it ended says nothing to a reader
}

func (e *untakenError) Error() string {
	return fmt.Sprintf("PostgreSQL did not take the rows of a COPY for %s", e.within)
}

func (e *untakenError) Unwrap() []error { return []error{context.DeadlineExceeded, e.err} }

// swallowedError is a merge that stored fewer rows than it was given: a rule, or a trigger that returns NULL, which
// somebody gave the version's table. PostgreSQL calls that a success.
type swallowedError struct {
	rows  int
	table string
}

func (e *swallowedError) Error() string {
	return fmt.Sprintf("%d rows were not stored: a trigger or a rule of %s drops them", e.rows, e.table)
}

// dataError is an error that the data of a batch raised, in the engine or in the database: the same batch raises it
// again, a batch without the record does not.
type dataError struct{ err error }

func (e *dataError) Error() string { return e.err.Error() }
func (e *dataError) Unwrap() error { return e.err }
