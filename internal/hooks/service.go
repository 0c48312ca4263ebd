package hooks

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/retry"
)

// Hook is a command or a URL that is notified of events. Exactly one of Command and URL is set.
type Hook struct {
	Name    string
	On      []job.HookEvent // empty: all
	Jobs    []string        // empty: all
	Command []string        // program and arguments
	URL     string
	Secret  func(context.Context) (string, error) // signs requests to URL; nil or an empty secret: unsigned
	Timeout time.Duration
}

func (h Hook) wants(on job.HookEvent, of job.Name) bool {
	return (len(h.On) == 0 || slices.Contains(h.On, on)) && (len(h.Jobs) == 0 || slices.Contains(h.Jobs, string(of)))
}

// mayRefuse reports whether the hook is a command that may refuse the act. Before runs it; Run does not notify it
// again.
func (h Hook) mayRefuse(on job.HookEvent) bool {
	return on == job.HookBeforePromote && len(h.Command) > 0
}

// Deps are the dependencies of a Service.
type Deps struct {
	Pool  *pg.Pool
	Agent string                                                      // id
	Note  func(context.Context, job.HookFacts, job.HookOutcome) error // writes the outcome to the history
	HTTP  *http.Client                                                // nil: a client that follows no redirects
	Env   func(string) string
	Log   *slog.Logger
	Now   func() time.Time
	Rand  *rand.Rand
}

// Config bounds a Service. Zero fields mean the defaults set in New.
type Config struct {
	Hooks      []Hook
	Poll       time.Duration // interval of reading new events, default 1 s
	Backoff    time.Duration // before the second try of a URL, doubled for each further one, default 1 s
	MaxBackoff time.Duration // default 10 min
	GiveUp     time.Duration // after the event, default 24 h
	AtOnce     int           // concurrent deliveries per hook, default 4
	Forget     time.Duration // after a hook was last in an agent's settings, default 10 min
}

// Service delivers events to hooks. Its fields do not change after New, except random, which mu guards.
type Service struct {
	Deps
	config Config
	mu     sync.Mutex
	random *rand.Rand
}

// New creates a Service.
func New(d Deps, c Config) *Service {
	c.Poll = cmp.Or(c.Poll, time.Second)
	c.Backoff = cmp.Or(c.Backoff, time.Second)
	c.MaxBackoff = cmp.Or(c.MaxBackoff, 10*time.Minute)
	c.GiveUp = cmp.Or(c.GiveUp, 24*time.Hour)
	c.AtOnce = cmp.Or(c.AtOnce, 4)
	c.Forget = cmp.Or(c.Forget, 10*time.Minute)
	if d.HTTP == nil {
		d.HTTP = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &Service{Deps: d, config: c, random: d.Rand}
}

// deliver tries once and records the result. If ctx ends, another agent can take the delivery at once.
func (s *Service) deliver(ctx context.Context, h Hook, d delivery) error {
	err := s.try(ctx, h, d)
	if ctx.Err() != nil {
		return release(context.WithoutCancel(ctx), s.Pool, d)
	}
	return err
}

func (s *Service) try(ctx context.Context, h Hook, d delivery) error {
	facts, err := factsOf(ctx, s.Pool, d.Event, d.Told)
	if errors.Is(err, pgx.ErrNoRows) {
		return finish(ctx, s.Pool, d, stateGivenUp, "the event was deleted with its job")
	}
	if err != nil {
		return err
	}
	outcome := s.run(ctx, h, facts)
	outcome.Tries = d.Tries
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.conclude(ctx, h, d, facts, outcome)
}

// run runs the hook once.
func (s *Service) run(ctx context.Context, h Hook, facts job.HookFacts) job.HookOutcome {
	began := s.Now()
	limited, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	var o job.HookOutcome
	if h.URL != "" {
		o = s.post(limited, h, facts)
	} else {
		o = s.command(limited, h, facts)
	}
	o.Reason = clean([]byte(o.Reason[:min(len(o.Reason), keptOutput)])) // it may contain text from the receiver
	o.Hook, o.OK, o.Seconds = h.Name, o.Reason == "", s.Now().Sub(began).Seconds()
	return o
}

// conclude ends a delivery, or postpones it if a URL did not accept it.
func (s *Service) conclude(ctx context.Context, h Hook, d delivery, facts job.HookFacts, o job.HookOutcome) error {
	state := stateDone
	again := h.URL != "" && !o.OK && s.Now().Sub(facts.At) < s.config.GiveUp
	switch {
	case again:
		return s.putOff(ctx, d, facts, o)
	case h.URL != "" && !o.OK:
		state, o.Reason = stateGivenUp, "given up: "+o.Reason
	}
	if err := s.Note(ctx, facts, o); err != nil {
		return err
	}
	return finish(ctx, s.Pool, d, state, answerOf(o))
}

func (s *Service) putOff(ctx context.Context, d delivery, facts job.HookFacts, o job.HookOutcome) error {
	if d.Tries == 1 { // only the first failure: a receiver that is down for hours would fill the history
		if err := s.Note(ctx, facts, o); err != nil {
			return err
		}
	}
	return postpone(ctx, s.Pool, d, s.pause(d.Tries), answerOf(o))
}

// pause returns the wait after a number of tries: doubled each time, with 20 % jitter.
func (s *Service) pause(tries int) time.Duration {
	d := retry.Backoff(tries, s.config.Backoff, s.config.MaxBackoff)
	s.mu.Lock()
	defer s.mu.Unlock()
	return d - d/5 + time.Duration(s.random.Int64N(int64(d/5)*2+1))
}

func answerOf(o job.HookOutcome) string {
	if o.OK {
		return o.Output
	}
	return o.Reason + "\n" + o.Output
}

// Wants reports whether a hook is notified of an event of a job.
func (s *Service) Wants(on job.HookEvent, of job.Name) bool {
	return slices.ContainsFunc(s.config.Hooks, func(h Hook) bool { return h.wants(on, of) })
}

// Before runs the hooks that may refuse an act, in the order of the settings, and stops at the first failure. It
// returns an error only if ctx ends.
func (s *Service) Before(ctx context.Context, facts job.HookFacts) ([]job.HookOutcome, error) {
	var out []job.HookOutcome
	for _, h := range s.config.Hooks {
		if !h.mayRefuse(facts.Event) || !h.wants(facts.Event, facts.Job) {
			continue
		}
		o := s.run(ctx, h, facts)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		o.Tries = 1
		out = append(out, o)
		if !o.OK {
			break
		}
	}
	return out, nil
}
