package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/devstack"
	"github.com/kappactl/kappactl/internal/pg"
)

type devOptions struct {
	*app
	data        string
	postgresBin string
	http        string
	brokers     []string // existing ones, in place of the embedded one
	dsn         string   // an existing database
	failsOnly   bool     // the agent logs errors only: what it warns of is part of the show
}

func newDev(a *app, run func(context.Context, devOptions) error) *cobra.Command {
	o := devOptions{app: a}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a local Kafka, PostgreSQL and agent, with the data kept in a folder",
		Long: `Start an in-process Kafka (for local use only), a PostgreSQL from the installed server binaries, and an agent, and run until
interrupted. When all is up, one line on the output says where:

  ready config=DIR/kappactl.yaml brokers=HOST:PORT dsn=postgres://… http=HOST:PORT

That config file makes every other command work, with --config or KAPPACTL_CONFIG. A second start on the same folder finds everything
again. --brokers and --dsn use existing servers in place of the embedded ones.`,
		Example:     "  kappactl dev --data ./dev\n  export KAPPACTL_CONFIG=./dev/kappactl.yaml",
		Args:        exactly(),
		Annotations: map[string]string{timeoutKey: noTimeout, untilStoppedKey: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if given := a.flags.given["brokers"]; given != "" {
				o.brokers = strings.Split(given, ",")
			}
			o.dsn = a.flags.given["dsn"]
			if err := config.FlagDSN(o.dsn); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.data, "data", "kappactl-dev", "`FOLDER` that keeps topics and tables")
	f.StringVar(&o.postgresBin, "postgres-bin", "",
		"`FOLDER` of the PostgreSQL server binaries (default: found by itself)")
	f.StringVar(&o.http, "http", "", "`ADDRESS` of the HTTP server (default: a free port, kept over restarts)")
	return cmd
}

// running is a stack with an agent that works.
type running struct {
	config  string // path of its settings file
	brokers []string
	dsn     string
	http    string
	pool    *pg.Pool
}

func runDev(ctx context.Context, o devOptions) error {
	return withStack(ctx, o, func(ctx context.Context, up *running) error {
		_, err := fmt.Fprintf(o.sys.Out, "ready config=%s brokers=%s dsn=%s http=%s\n",
			word(up.config), word(strings.Join(up.brokers, ",")), word(up.dsn), word(up.http))
		if err != nil {
			return fmt.Errorf("print: %w", err)
		}
		<-ctx.Done() // the first Ctrl-C or SIGTERM, or a part of the stack that failed
		return nil
	})
}

// word quotes a value that holds spaces, so that the line can be split at spaces.
func word(s string) string {
	if strings.ContainsAny(s, " \t\"'\\") {
		return strconv.Quote(s)
	}
	return s
}

// withStack starts the stack and an agent, calls use when both work, and ends them when use returns. The end of ctx by
// an interrupt is no error.
func withStack(ctx context.Context, o devOptions, use func(context.Context, *running) error) (err error) {
	stack, err := devstack.Start(ctx, devstack.Config{
		Data: o.data, Brokers: o.brokers, DSN: o.dsn, PostgresBin: o.postgresBin, HTTP: o.http, Now: o.sys.Now,
		Log: func(line string) { o.progress("%s", line) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stack.Close()) }()
	settings, err := o.stackSettings(stack.ConfigPath)
	if err != nil {
		return err
	}
	settings.HTTP = stack.HTTP
	pool, err := o.connect(ctx, settings)
	if err != nil {
		return err
	}
	defer pool.Close()

	group, ctx := errgroup.WithContext(ctx)
	done, cancel := context.WithCancel(ctx)
	up := make(chan string, 1)
	group.Go(func() error { return stack.Wait(done) })
	group.Go(func() error {
		return o.host(done, settings, false, o.quietLog(settings), func(address string) { up <- address })
	})
	group.Go(func() error {
		defer cancel()
		select {
		case <-done.Done():
			return nil
		case address := <-up:
			return use(done, &running{
				config: stack.ConfigPath, brokers: stack.Brokers, dsn: stack.DSN, http: address,
				pool: pool,
			})
		}
	})
	return group.Wait()
}

// quietLog is quiet about what goes well: the agent of dev shares its terminal with a person.
func (o devOptions) quietLog(s config.Settings) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelWarn}
	switch {
	case o.flags.debug:
		options.Level = slog.LevelDebug
	case o.failsOnly:
		options.Level = slog.LevelError
	}
	if s.Agent.Log == "json" {
		return slog.New(slog.NewJSONHandler(o.sys.Err, options))
	}
	return slog.New(slog.NewTextHandler(o.sys.Err, options))
}

// stackSettings are those of the stack's settings file, and of the variables that are about agents and checks.
// Variables that lead to other servers are not for the stack.
func (a *app) stackSettings(path string) (config.Settings, error) {
	e := a.surroundings()
	all := e.Getenv
	e.Getenv = func(name string) string {
		for _, s := range config.Table() {
			if s.Env == name && (s.OfAgent() || s.Name == "checks.role") {
				return all(name)
			}
		}
		return ""
	}
	return config.Load(config.Flags{"config": path, "context": devstack.Context}, e)
}
