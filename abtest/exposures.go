package abtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// knownFor is how long a recorded arm is used without asking the database, which may have been told to forget the
// subject.
const knownFor = time.Minute

// mostAtOnce is how many exposures are recorded in one statement.
const mostAtOnce = 500

// exposureTimeout bounds the statement that records exposures.
const exposureTimeout = 2 * time.Second

type exposureKey struct {
	job     job.Name
	run     int
	subject string
}

// knownArm is a recorded arm.
type knownArm struct {
	arm string
	at  time.Time // when it was read
}

// memory holds the newest recorded arms.
type memory struct {
	arms map[exposureKey]knownArm
	ring []exposureKey
	next int
}

func newMemory(size int) *memory {
	return &memory{arms: map[exposureKey]knownArm{}, ring: make([]exposureKey, 0, size)}
}

func (m *memory) put(k exposureKey, a knownArm) {
	if _, known := m.arms[k]; !known {
		if len(m.ring) < cap(m.ring) {
			m.ring = append(m.ring, k)
		} else {
			delete(m.arms, m.ring[m.next])
			m.ring[m.next] = k
			m.next = (m.next + 1) % len(m.ring)
		}
	}
	m.arms[k] = a
}

// exposure is a subject that is to be recorded. done is closed when arm, or err, is there.
type exposure struct {
	key   exposureKey
	arm   string // empty: the run is over or paused
	epoch int
	err   error
	done  chan struct{}
}

// Expose is Route for a subject that is about to read its arm: it is recorded with it, once a run. Subjects outside the
// experiment, pinned ones, and those of a pause are not recorded, and none is while the database does not answer.
func (r *Router) Expose(ctx context.Context, name job.Name, subject, pin string) (Assignment, error) {
	a, sticky, err := r.routed(ctx, name, subject, pin)
	if err != nil || a.Why != BySplit {
		return a, err
	}
	key := exposureKey{name, a.Run, subject}
	r.mu.Lock()
	known, found := r.known.arms[key]
	fresh := found && r.now().Sub(known.at) < knownFor
	r.mu.Unlock()
	if a.Stale || fresh {
		return a.by(known, found, sticky), nil
	}
	e := r.record(ctx, key)
	switch {
	case e.err != nil:
		a.Stale = true
		return a.by(known, found, sticky), nil
	case e.arm == "": // the run has ended, or is paused, since the routes were read
		r.again()
		return r.Route(ctx, name, subject, pin)
	}
	a.Version, a.Epoch, a.Recorded = e.arm, e.epoch, true
	return a, nil
}

// routed is the assignment by weight, and whether stored arms come first.
func (r *Router) routed(ctx context.Context, name job.Name, subject, pin string) (a Assignment, sticky bool,
	err error,
) {
	t, err := r.routes(ctx)
	if err != nil {
		return Assignment{}, false, err
	}
	one, found := t.routes[name]
	if !found {
		return Assignment{}, false, ErrUnknownJob
	}
	a, err = one.assign(subject, pin, t.stale)
	return a, one.Sticky, err
}

// by is an assignment with the recorded arm, when one is known.
func (a Assignment) by(known knownArm, found, sticky bool) Assignment {
	a.Recorded = found
	switch {
	case found && sticky:
		a.Version = known.arm
	case sticky:
		a.Sticky = false
	}
	return a
}

// record stores an exposure, together with those of other callers, and waits for it.
func (r *Router) record(ctx context.Context, key exposureKey) *exposure {
	e := &exposure{key: key, done: make(chan struct{})}
	r.mu.Lock()
	r.waiting = append(r.waiting, e)
	if !r.writing {
		r.writing = true
		go r.write()
	}
	r.mu.Unlock()
	select {
	case <-e.done:
		return e
	case <-ctx.Done():
		return &exposure{err: ctx.Err()}
	}
}

// write records what waits until nothing does: while one statement is under way the next one gathers.
func (r *Router) write() {
	for {
		r.mu.Lock()
		n := min(len(r.waiting), mostAtOnce)
		batch := slices.Clone(r.waiting[:n])
		r.waiting = append([]*exposure(nil), r.waiting[n:]...)
		if n == 0 {
			r.writing = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		r.store(batch)
	}
}

// store records a batch in one statement. Its order keeps two agents from waiting for each other.
func (r *Router) store(batch []*exposure) {
	slices.SortFunc(batch, func(a, b *exposure) int {
		return cmp.Or(cmp.Compare(a.key.job, b.key.job), cmp.Compare(a.key.subject, b.key.subject))
	})
	jobs, subjects := make([]string, len(batch)), make([]string, len(batch))
	for i, e := range batch {
		jobs[i], subjects[i] = string(e.key.job), e.key.subject
	}
	type stored struct {
		N          int
		Arm        string
		Run, Epoch int
		Paused     bool
	}
	ctx, cancel := context.WithTimeout(context.Background(), exposureTimeout)
	defer cancel()
	found, err := pg.Structs[stored](ctx, r.pool, `SELECT i.n, coalesce(kappactl.expose(i.job, i.subject), '') AS arm,
			coalesce(t.run, 0) AS run, coalesce(t.epoch, 0) AS epoch, coalesce(t.paused, false) AS paused
		FROM unnest(@jobs::text[], @subjects::text[]) WITH ORDINALITY i(job, subject, n)
		LEFT JOIN LATERAL (SELECT * FROM kappactl.route t WHERE t.job = i.job LIMIT 1) t ON true`,
		pgx.NamedArgs{"jobs": jobs, "subjects": subjects})
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for _, s := range found {
		e := batch[s.N-1]
		if s.Run != e.key.run || s.Paused {
			continue
		}
		e.arm, e.epoch = s.Arm, s.Epoch
		r.known.put(e.key, knownArm{arm: s.Arm, at: now})
	}
	r.table.stale = r.table.stale || err != nil // until it is read again
	for _, e := range batch {
		if err != nil {
			e.err = fmt.Errorf("record exposures: %w", err)
		}
		close(e.done)
	}
}

// recall replaces the versions of assignments in sticky experiments by the stored arms of the subject. Those that the
// database does not tell are by hash.
func (r *Router) recall(ctx context.Context, t table, subject string, found []Assignment) {
	var ask []string
	r.mu.Lock()
	for i, a := range found {
		sticky := a.Why == BySplit && t.routes[a.Job].Sticky
		if !sticky {
			continue
		}
		known, is := r.known.arms[exposureKey{a.Job, a.Run, subject}]
		found[i] = a.by(known, is, true)
		if !t.stale && (!is || r.now().Sub(known.at) >= knownFor) {
			ask = append(ask, string(a.Job))
		}
	}
	r.mu.Unlock()
	if len(ask) == 0 {
		return
	}
	type stored struct {
		Job string
		Run int
		Arm string
	}
	ctx, cancel := context.WithTimeout(ctx, exposureTimeout)
	defer cancel()
	rows, err := pg.Structs[stored](ctx, r.pool,
		`SELECT job, run, arm FROM kappactl.assignment WHERE subject = @subject AND job = ANY (@jobs)`,
		pgx.NamedArgs{"subject": subject, "jobs": ask})
	if err != nil {
		for i := range found {
			found[i].Stale = found[i].Stale || slices.Contains(ask, string(found[i].Job))
		}
		return
	}
	for i, a := range found {
		if !slices.Contains(ask, string(a.Job)) {
			continue
		}
		plain, _ := t.routes[a.Job].assign(subject, "", false)
		found[i] = plain
		for _, s := range rows {
			if s.Job == string(a.Job) && s.Run == a.Run {
				found[i].Version, found[i].Recorded = s.Arm, true
			}
		}
	}
}
