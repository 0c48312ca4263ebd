package speedlayer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// ErrSealed is a step of a replay asked for after the replay was sealed: another controller got ahead.
var ErrSealed = errors.New("the replay is already sealed")

// HeldError is a barrier that cannot be set because another one stands.
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

// errFenced is a write that changed nothing because the claim was lost.
var errFenced = errors.New("the claim was lost to another worker")

// dataError is an error that the data of a batch raised, in the engine or in the database: the same batch raises it
// again, a batch without the record does not.
type dataError struct{ err error }

func (e *dataError) Error() string { return e.err.Error() }
func (e *dataError) Unwrap() error { return e.err }
