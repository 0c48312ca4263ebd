package speedlayer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgerrcode"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// Work that fails is tried again, whatever the cause: it may be the database's or the brokers', or what people did to a
// version's table. What fails for longer than toldAfter is written beside the version, and again every toldEvery while
// it lasts, so that a row that is older is no longer true.
const (
	toldAfter = 2 * time.Second
	toldEvery = 2 * time.Second

	forgottenAfter = time.Minute
)

const (
	sqlTrouble = `
INSERT INTO kappactl.pace (job, number, agent, at, trouble)
VALUES (@job, @number, @agent, clock_timestamp(), @trouble::jsonb)
ON CONFLICT (job, number, agent) DO UPDATE SET at = excluded.at, trouble = excluded.trouble`
	sqlTroubleOver = `UPDATE kappactl.pace SET trouble = '{}' WHERE job = @job AND number = @number AND agent = @agent`
)

// work is one kind of work that a run repeats.
type work string

const (
	starting   work = "start"
	claiming   work = "claim"
	renewing   work = "renew claims"
	looking    work = "look at claims"
	committing work = "commit"
	landings   work = "land segments"
)

// fetching is the work of reading a partition, named topic/partition.
func fetching(partition string) work { return work("fetch " + partition) }

// committingTo is the work of committing a partition that PostgreSQL refuses.
func committingTo(p job.Partition) work { return work("commit " + p.String()) }

// fetchFails is the reason why a partition cannot be read.
func fetchFails(partition string) func(agent, cause string) reason.Reason {
	return func(agent, cause string) reason.Reason { return reason.FetchFails(agent, partition, cause) }
}

// failure is work that failed each time since a moment. What did not fail again for forgottenAfter may be in other
// hands by now.
type failure struct {
	since, last time.Time
	why         reason.Reason // of the last failure
}

// troubles are the works of a run that fail. Guarded by mu.
type troubles struct {
	mu      sync.Mutex
	of      map[work]failure
	written reason.Reason // beside the version; zero: nothing is
	at      time.Time     // when it was written
}

// fails notes that work failed.
func (t *troubles) fails(w work, now time.Time, why reason.Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	since := now
	if known, ok := t.of[w]; ok {
		since = known.since
	}
	if t.of == nil {
		t.of = map[work]failure{}
	}
	t.of[w] = failure{since, now, why}
}

// works notes that work succeeded, or is no longer this run's.
func (t *troubles) works(w work) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, w)
}

// none notes that the run has no work.
func (t *troubles) none() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.of)
}

// due returns the failure to write now: the one that has lasted longest. Zero with changed means that none is left.
func (t *troubles) due(now time.Time) (why reason.Reason, changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var first failure
	for w, one := range t.of {
		if now.Sub(one.last) >= forgottenAfter {
			delete(t.of, w)
			continue
		}
		if now.Sub(one.since) >= toldAfter && (first.since.IsZero() || one.since.Before(first.since)) {
			first = one
		}
	}
	if first.why.IsZero() {
		return first.why, !t.written.IsZero()
	}
	return first.why, !first.why.Equal(t.written) || now.Sub(t.at) >= toldEvery
}

func (t *troubles) wrote(why reason.Reason, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written, t.at = why, now
}

// failed notes that work of this run failed with err. What the end of ctx or an unreachable database causes is none of
// the work's.
func (r *run) failed(ctx context.Context, w work, why func(agent, cause string) reason.Reason, err error) {
	if ctx.Err() == nil && !pg.Unreachable(err) {
		r.troubles.fails(w, r.Now(), why(r.Agent, printable(pg.Cause(err))))
	}
}

// tell writes beside the version what fails, or that nothing does any more.
func (r *run) tell(ctx context.Context) error {
	now := r.Now()
	why, changed := r.troubles.due(now)
	if !changed {
		return nil
	}
	args := refArgs(r.ref)
	args["agent"], args["trouble"] = r.Agent, why
	sql := sqlTrouble
	if why.IsZero() {
		sql = sqlTroubleOver
	}
	if _, err := r.Pool.Exec(ctx, sql, args); err != nil {
		return fmt.Errorf("note what fails of %s: %w", r.ref, err)
	}
	r.troubles.wrote(why, now)
	return nil
}

// quit notes that nothing of this run fails any more: it ends, or has other work from now on.
func (r *run) quit(ctx context.Context) {
	r.troubles.none()
	end, cancel := r.finishing(ctx)
	defer cancel()
	if err := r.tell(end); err != nil {
		r.log.Info("what failed stays noted until it is stale", "error", err)
	}
}

// tableChanged reports whether a commit failed because what it writes is not as it was created: the version's table was
// dropped, or is without a column or its unique index, or has a trigger that drops rows. Rights that are missing come
// back with a GRANT.
func tableChanged(err error) bool {
	var merge *mergeError
	if !errors.As(err, &merge) {
		return false
	}
	var swallowed *swallowedError
	if errors.As(err, &swallowed) {
		return true
	}
	code := pg.Code(err)
	return len(code) == 5 && code[:2] == "42" && code != pgerrcode.InsufficientPrivilege
}

// haveFault stops the partitions of a batch that cannot be committed, whatever it holds.
func haveFault(parts []part, kind job.FaultKind, err error) {
	for _, p := range parts {
		p.cutAt(p.from, job.Fault{Kind: kind, Detail: printable(pg.Cause(err))})
	}
}
