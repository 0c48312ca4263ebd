package speedlayer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/kappactl/kappactl/internal/query"
)

// errSlow ends a statement in which the engine works for too long without taking a batch or giving one.
var errSlow = errors.New("the engine was at work for too long")

// query runs a statement over in. The time that the engine takes from one batch, taken or given, to the next is
// bounded; more is a *query.ResourceError. How long in and yield take does not count.
func (r *run) query(ctx context.Context, s *query.Session, sql string, in *feed,
	yield func(arrow.RecordBatch) error,
) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	within := r.patience
	working := time.AfterFunc(within, func() { giveUp(errSlow) })
	defer working.Stop()
	pull := in.pull
	in.pull = func() (arrow.RecordBatch, error) {
		working.Stop()
		defer working.Reset(within)
		return pull()
	}
	err := s.Run(ctx, sql, in, func(b arrow.RecordBatch) error {
		working.Stop()
		defer working.Reset(within)
		return yield(b)
	})
	in.pull = pull
	if errors.Is(err, errSlow) {
		return &query.ResourceError{Err: fmt.Errorf("%w (%s)", errSlow, within), Costly: true}
	}
	return err
}
