package programs

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
)

// Deps are what a Runner works with.
type Deps struct {
	Pool      *pg.Pool
	Positions Positions
	Brokers   Brokers
	Agent     string // names this process in leases
	Log       *slog.Logger
	Now       func() time.Time // default time.Now
}

// Config bounds a Runner. Zero durations mean the defaults.
type Config struct {
	Allow   []string                 // patterns of programs; none: it runs none
	Brokers []string                 // as programs reach them
	DSN     string                   // as programs reach the database
	Schema  string                   // control schema; default kappactl
	Temp    string                   // folder for the working folders of programs; default the system's
	Env     func(name string) string // the agent's own environment; default os.Getenv
	Lease   time.Duration            // of positions, default 10 s
	Look    time.Duration            // between two looks at a running instance, default 500 ms
	First   time.Duration            // the first pause after an end, default 1 s
	Most    time.Duration            // the longest pause, default 1 min
}

// A program that ends loopEnds times within loopWithin is unhealthy. One that runs for settled is not ending again and
// again.
const (
	loopEnds   = 10
	loopWithin = 10 * time.Minute
	settled    = time.Minute
)

// Runner runs the instances of programs that an agent holds.
type Runner struct {
	Deps
	config Config
}

// NewRunner makes a Runner.
func NewRunner(d Deps, c Config) *Runner {
	if d.Now == nil {
		d.Now = time.Now
	}
	if c.Env == nil {
		c.Env = os.Getenv
	}
	c.Temp = cmp.Or(c.Temp, os.TempDir())
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.Look = cmp.Or(c.Look, 500*time.Millisecond)
	c.First = cmp.Or(c.First, time.Second)
	c.Most = cmp.Or(c.Most, time.Minute)
	return &Runner{Deps: d, config: c}
}

// Work is the leased work of a Runner; none when it may run no program.
func (r *Runner) Work() []agent.Work {
	if len(r.config.Allow) == 0 {
		return nil
	}
	return []agent.Work{{Name: "program", Table: "kappactl.program", Open: wanted, Held: wanted, Run: r.Run}}
}

func tableOf(i *item) string { return pg.Ident(i.schema, i.ref.Table()) }

// Run runs one instance until it is not wanted any more, its claim is lost or ctx ends; the process has ended then.
func (r *Runner) Run(ctx context.Context, id, claim int64) error {
	h := &holding{Runner: r, id: id, row: claim}
	for ctx.Err() == nil {
		i, err := look(ctx, r.Pool, id)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case !i.wanted || i.claim != claim || i.owner != r.Agent:
			return nil
		}
		if why := r.refuses(i); !why.IsZero() {
			r.Log.Warn(why.Text(), "job", string(i.ref.Job), "version", i.ref.Number.String())
			if err := r.Positions.Trouble(ctx, r.Pool, i.ref, r.Agent, why); err != nil {
				return err
			}
			return &job.Refusal{Code: job.ExitUsage, Cause: why.Text(), Next: "allow it there, or give the job another program"}
		}
		if err := h.once(ctx, i); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// refuses is why the agent does not run the program of an instance; zero when it does.
func (r *Runner) refuses(i *item) reason.Reason {
	if program := i.spec.Program.Command[0]; !Allows(r.config.Allow, program) {
		return reason.NotAllowed(r.Agent, program)
	}
	return reason.Reason{}
}

// grant lets the programs' role write the version's table, when it is not the agent's own.
func (r *Runner) grant(ctx context.Context, i *item) error {
	if r.config.DSN == "" {
		return nil
	}
	c, err := pgconn.ParseConfig(r.config.DSN)
	if err != nil || c.User == "" {
		return nil // the program will tell
	}
	var own string
	if err := r.Pool.QueryRow(ctx, `SELECT current_user`).Scan(&own); err != nil || own == c.User {
		return err
	}
	_, err = r.Pool.Exec(ctx, "GRANT SELECT, INSERT, UPDATE, DELETE ON "+tableOf(i)+" TO "+pg.Ident(c.User))
	return err
}

// rest waits between two looks.
func (r *Runner) rest(ctx context.Context) { _ = retry.Sleep(ctx, r.config.Look) }
