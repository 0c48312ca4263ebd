package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
	"github.com/kappactl/kappactl/serving"
)

// settings finds the settings from flags, environment and file.
func (a *app) settings() (config.Settings, error) {
	return config.Load(a.flags.given, a.surroundings())
}

// connect opens the database of the settings.
func (a *app) connect(ctx context.Context, s config.Settings) (*pg.Pool, error) {
	if err := s.NeedDSN(); err != nil {
		return nil, err
	}
	a.log().Debug("settings", "context", s.Context, "file", s.File, "brokers", s.Brokers, "dsn", s.DSN.String(), "schema",
		s.Schema)
	c := pgConfig(s)
	if a.flags.debug {
		c.Log = a.log()
	}
	return pg.Open(ctx, c)
}

// pgConfig is how the settings reach the database. A password file or command is read again for each new connection.
func pgConfig(s config.Settings) pg.Config {
	c := pg.Config{DSN: string(s.DSN), Schema: s.Schema}
	if !s.Password.IsZero() {
		c.Password = func(ctx context.Context) (string, error) {
			password, err := s.Password.Read(ctx)
			if err != nil {
				return "", &job.Refusal{Code: job.ExitUsage, Cause: err.Error(), Err: err}
			}
			return string(password), nil
		}
	}
	return c
}

// client holds the connections and the settings of a command.
type client struct {
	settings  config.Settings
	pool      *pg.Pool
	locations *archive.Locations
	store     *reprocess.Store
	now       func() time.Time
}

// client opens the database and proves that this binary can work with its control schema.
func (a *app) client(ctx context.Context) (*client, error) {
	settings, err := a.settings()
	if err != nil {
		return nil, err
	}
	pool, err := a.connect(ctx, settings)
	if err != nil {
		return nil, err
	}
	if err := pg.CheckSchema(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return &client{
		settings: settings, pool: pool, locations: locationsOf(settings), store: reprocess.NewStore(pool),
		now: a.sys.Now,
	}, nil
}

func (c *client) Close() { c.pool.Close() }

// resolve finds the version that a verb is about.
func (c *client) resolve(ctx context.Context, t target, verb ledger.Verb) (job.Ref, error) {
	if t.Number == nil {
		return c.store.Resolve(ctx, t.Job, verb)
	}
	status, err := c.store.Status(ctx, t.Job)
	if err != nil {
		return job.Ref{}, err
	}
	_, err = versionOf(status, *t.Number)
	return job.Ref{Job: t.Job, Number: *t.Number}, err
}

// statuses are those of one job, or of all.
func (c *client) statuses(ctx context.Context, t *target) ([]status.Job, error) {
	if t == nil {
		return c.store.Jobs(ctx)
	}
	one, err := c.store.Status(ctx, t.Job)
	return []status.Job{one}, err
}

// needAgent refuses to go on while no agent is alive; it waits as long as patience says.
func (c *client) needAgent(ctx context.Context, patience time.Duration) error {
	until := c.now().Add(patience)
	for {
		alive, err := c.agents(ctx)
		if err != nil || alive > 0 {
			return err
		}
		if !c.now().Before(until) {
			return &job.Refusal{
				Code: job.ExitUnreachable, Cause: "no agent is alive: nothing would happen, so nothing was written",
				Next: "kappactl serve",
			}
		}
		timer := time.NewTimer(followEvery)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// admin asks the brokers of the settings; the caller closes it.
func (c *client) admin(ctx context.Context) (*kafka.Admin, kafka.Config, error) {
	k, err := kafkaConfig(ctx, c.settings)
	if err != nil {
		return nil, k, err
	}
	admin, err := kafka.NewAdmin(k)
	return admin, k, err
}

// brokerPatience is how long a command waits for the brokers before it reports that they do not answer.
const brokerPatience = 5 * time.Second

// clusterID proves that the brokers answer and have the topics, and says which cluster they are.
func (c *client) clusterID(ctx context.Context, topics []string) (string, error) {
	k, err := kafkaConfig(ctx, c.settings)
	if err != nil {
		return "", err
	}
	admin, err := kafka.NewAdmin(k)
	if err != nil {
		return "", err
	}
	defer admin.Close()
	id, err := admin.ClusterWithin(ctx, brokerPatience)
	if err != nil {
		return "", err
	}
	short, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	// Only what is surely wrong stops here; what cannot be read is the agent's to judge, which may have more rights.
	var missing *kafka.MissingTopicError
	if _, err := admin.Offsets(short, topics); errors.As(err, &missing) {
		return "", &job.Refusal{
			Code: job.ExitUsage, Cause: missing.Error() + " at " + strings.Join(k.Brokers, ","),
			Next: "create the topic, or correct source.topics", Err: err,
		}
	}
	return id, nil
}

// views answers questions about serving views.
func views() *serving.Store { return serving.New(serving.Config{}) }

// by is who asks: USER@HOST, for the history.
func (a *app) by() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	name := cmp.Or(a.sys.Env("USER"), a.sys.Env("LOGNAME"))
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
	}
	return cmp.Or(name, "unknown") + "@" + host
}

// gitRevision is the commit of the job file, for the history: empty when it is in no repository or standard input, with
// + when the file differs from it.
func gitRevision(ctx context.Context, file string) string {
	if file == standardInput {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", filepath.Dir(file)}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	revision, err := git("rev-parse", "--short=12", "HEAD")
	if err != nil {
		return ""
	}
	if changed, err := git("status", "--porcelain", "--", filepath.Base(file)); err == nil && changed != "" {
		revision += "+"
	}
	return revision
}

// agents is how many agents are alive.
func (c *client) agents(ctx context.Context) (int, error) {
	return agent.Alive(ctx, c.pool, agent.AliveWithin)
}
