package abtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/kappactl/kappactl/abtest/policy"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Why is the cause of an Assignment.
type Why string

// The causes of assignments.
const (
	BySplit   Why = "split"         // by weight, or by the stored arm
	Outside   Why = "outside"       // not among the subjects of the experiment: the control
	Pinned    Why = "pinned"        // the reader asked for that arm
	AtPause   Why = "paused"        // every reader reads the control
	NoSplit   Why = "no_experiment" // the live version
	maxCached     = 100_000
)

// Assignment is the version that a subject reads.
type Assignment struct {
	Job     job.Name `json:"job"`
	Version string   `json:"version"`
	Why     Why      `json:"why"`
	Run     int      `json:"run"`   // 0: no experiment
	Epoch   int      `json:"epoch"` // stretch of constant weights; 0: no experiment
	View    string   `json:"view"`  // where it is read
	Stale   bool     `json:"stale"` // the database does not answer: by the last route that was read
	// Sticky is false for a subject of a sticky experiment whose stored arm could not be read: the version is that of its
	// hash.
	Sticky bool `json:"sticky"`
	// Recorded reports whether the subject is stored with its arm.
	Recorded bool `json:"recorded"`
}

// Errors of a Router about what a caller asked for.
var (
	ErrNoSubject = errors.New("the experiment needs a subject")
	ErrSubject   = errors.New("a subject is UTF-8 text of 1 to 256 bytes without NUL")
	ErrPin       = errors.New("the pin is not an arm of the experiment")
)

// CheckSubject returns ErrSubject for a text that is not a subject.
func CheckSubject(subject string) error {
	if subject == "" || len(subject) > 256 || !utf8.ValidString(subject) || strings.ContainsRune(subject, 0) {
		return ErrSubject
	}
	return nil
}

// How a Router reads the routes: those of the last fresh are used as they are, older ones while they are read again,
// and those older than the patience are waited for. After a failure it waits before the next try.
const (
	routesFresh    = 100 * time.Millisecond
	routesPatience = time.Second
	routesBackoff  = time.Second
	routesTimeout  = 2 * time.Second
)

// Router tells callers outside PostgreSQL which version a subject reads: the same as the view shows it. A change of the
// route reaches it within a second. While the database does not answer it goes on by what it last read. It is safe for
// concurrent use.
type Router struct {
	pool *pg.Pool
	now  func() time.Time

	mu      sync.Mutex
	table   table
	reading chan struct{} // closed when the read under way has ended; nil: none is
	failed  error         // of the last read
	tried   time.Time
	known   *memory
	waiting []*exposure
	writing bool
}

// NewRouter makes a Router.
func NewRouter(pool *pg.Pool, now func() time.Time) *Router {
	return &Router{pool: pool, now: now, known: newMemory(maxCached)}
}

// table is every route at one moment.
type table struct {
	routes map[job.Name]route
	at     time.Time // zero: never read
	stale  bool
}

// route is how the readers of a job are routed; Run is 0 without an experiment.
type route struct {
	Job                  string
	ViewSchema, ViewName string
	Live                 int
	Run                  int
	Arms                 []string
	Weights              []int
	Coverage             int
	Sticky, Paused       bool
	Epoch                int
}

func (r *Router) read() {
	ctx, cancel := context.WithTimeout(context.Background(), routesTimeout)
	defer cancel()
	found, err := pg.Structs[route](ctx, r.pool, `SELECT j.name AS job, j.view_schema, j.view_name, j.live, coalesce(r.run, 0) AS run,
			coalesce(r.arms, '{}') AS arms, coalesce(r.weights, '{}') AS weights, coalesce(r.coverage, 0) AS coverage,
			coalesce(r.sticky, false) AS sticky, coalesce(r.paused, false) AS paused, coalesce(r.epoch, 0) AS epoch
		FROM kappactl.job j LEFT JOIN kappactl.route r ON r.job = j.name WHERE j.live IS NOT NULL`, nil)
	routes := make(map[job.Name]route, len(found))
	for _, one := range found {
		routes[job.Name(one.Job)] = one
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tried, r.failed = r.now(), err; err == nil {
		r.table = table{routes: routes, at: r.tried}
	} else {
		r.table.stale = true
	}
	close(r.reading)
	r.reading = nil
}

// routes returns the routes as they are now, or the last ones that could be read. It fails when none ever could.
func (r *Router) routes(ctx context.Context) (table, error) {
	r.mu.Lock()
	now := r.now()
	age := now.Sub(r.table.at)
	if r.reading == nil && age > routesFresh && (r.failed == nil || now.Sub(r.tried) > routesBackoff) {
		r.reading = make(chan struct{})
		go r.read()
	}
	reading, known := r.reading, !r.table.at.IsZero()
	wait := reading != nil && (!known || age > routesPatience && !r.table.stale)
	r.mu.Unlock()
	if wait {
		select {
		case <-reading:
		case <-ctx.Done():
			if !known {
				return table{}, ctx.Err()
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.table.at.IsZero() {
		return table{}, fmt.Errorf("read the routes: %w", r.failed)
	}
	return r.table, nil
}

// again makes the next caller wait for the routes to be read.
func (r *Router) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.table.stale {
		r.table.at = r.table.at.Add(-2 * routesPatience)
	}
}

// assign is the version that a subject reads by weight, when it has no stored arm.
func (t route) assign(subject, pin string, stale bool) (Assignment, error) {
	name := job.Name(t.Job)
	a := Assignment{
		Job: name, Version: job.Number(t.Live).String(), Why: NoSplit, Run: t.Run, Epoch: t.Epoch, Stale: stale, Sticky: true,
		View: job.ViewName{Schema: t.ViewSchema, Name: t.ViewName}.String(),
	}
	if t.Run == 0 {
		return a, nil
	}
	a.Version = t.Arms[0]
	switch {
	case slices.Contains(t.Arms, pin):
		a.Version, a.Why = pin, Pinned
		return a, nil
	case pin != "":
		return a, fmt.Errorf("%w: %s is none of %s", ErrPin, strconv.Quote(pin), strings.Join(t.Arms, ", "))
	case t.Paused:
		a.Why = AtPause
		return a, nil
	case subject == "":
		return a, ErrNoSubject
	}
	if err := CheckSubject(subject); err != nil {
		return a, err
	}
	run := strconv.Itoa(t.Run)
	if t.Coverage < policy.Million && policy.Bucket(policy.GateSalt(t.Job, run), subject) >= t.Coverage {
		a.Why = Outside
		return a, nil
	}
	a.Why = BySplit
	a.Version = t.Arms[policy.ArmOf(policy.Cuts(t.Weights), policy.Bucket(policy.ArmSalt(t.Job, run), subject))]
	return a, nil
}

// Route returns the version that a subject reads and records nothing. pin is the arm that the reader asks for; empty:
// none. The errors about what was asked for are those above; others mean that the routes could never be read.
func (r *Router) Route(ctx context.Context, name job.Name, subject, pin string) (Assignment, error) {
	t, err := r.routes(ctx)
	if err != nil {
		return Assignment{}, err
	}
	one, found := t.routes[name]
	if !found {
		return Assignment{}, ErrUnknownJob
	}
	a, err := one.assign(subject, pin, t.stale)
	if err != nil {
		return a, err
	}
	found1 := []Assignment{a}
	r.recall(ctx, t, subject, found1)
	return found1[0], nil
}

// Answer is the Assignment for one job, or why there is none.
type Answer struct {
	Assignment
	Err error
}

// All returns what a subject reads of every job with a live version, in the order of their names, and records nothing.
// pin returns the arm of a job that the reader asks for.
func (r *Router) All(ctx context.Context, subject string, pin func(job.Name) string) ([]Answer, error) {
	t, err := r.routes(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Answer, 0, len(t.routes))
	var good []Assignment
	for name, one := range t.routes {
		a, err := one.assign(subject, pin(name), t.stale)
		a.Job = name
		if out = append(out, Answer{a, err}); err == nil {
			good = append(good, a)
		}
	}
	r.recall(ctx, t, subject, good)
	for _, a := range good {
		out[slices.IndexFunc(out, func(o Answer) bool { return o.Job == a.Job })].Assignment = a
	}
	slices.SortFunc(out, func(a, b Answer) int { return strings.Compare(string(a.Job), string(b.Job)) })
	return out, nil
}
