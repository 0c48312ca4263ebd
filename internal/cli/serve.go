package cli

import (
	"context"
	"log/slog"
	"net"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/job"
)

type serveOptions struct {
	*app
	profiles bool
}

func newServe(a *app, run func(context.Context, serveOptions) error) *cobra.Command {
	o := serveOptions{app: a}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run an agent: it hosts the work of all versions until it is told to stop",
		Long: `Run an agent until SIGTERM or Ctrl-C: it then finishes the commits in hand and releases its claims, so that another agent
takes over within a second, and ends with exit code 0. Any number of agents share the work; any of them may be killed at any moment. It
also answers /healthz, /readyz and /metrics over HTTP, on the loopback interface unless told otherwise.`,
		Example:     "  kappactl serve --http 127.0.0.1:8080",
		Args:        exactly(),
		Annotations: map[string]string{timeoutKey: noTimeout, untilStoppedKey: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), o)
		},
	}
	settingFlags(cmd.Flags(), true)
	cmd.Flags().BoolVar(&o.profiles, "pprof", false, "also answer /debug/pprof; only on a loopback address")
	return cmd
}

func runServe(ctx context.Context, o serveOptions) error {
	settings, err := o.settings()
	if err != nil {
		return err
	}
	if o.profiles && !loopback(settings.HTTP) {
		return &job.Refusal{
			Code: job.ExitUsage, Cause: "--pprof lets anybody who reaches " + settings.HTTP + " slow the agent down",
			Next: "give a loopback address with --http, such as 127.0.0.1:8080",
		}
	}
	tuneCollector(settings.Agent.Memory)
	logger := o.agentLog(settings)
	if err := boundData(settings.Agent.Memory); err != nil {
		logger.Warn("one record may take all memory of this machine", "error", err)
	}
	err = o.host(ctx, settings, o.profiles, logger, func(address string) {
		logger.Info("agent works", "http", address, "lease", settings.Agent.Lease.String())
	})
	if err == nil && ctx.Err() != nil {
		logger.Info("agent has stopped", "cause", context.Cause(ctx).Error())
	}
	return err
}

// loopback reports whether only this machine reaches an address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// agentLog goes to the error stream, in the form of the settings.
func (a *app) agentLog(s config.Settings) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	switch {
	case a.flags.debug:
		options.Level = slog.LevelDebug
	case a.flags.quiet:
		options.Level = slog.LevelWarn
	}
	if s.Agent.Log == "json" {
		return slog.New(slog.NewJSONHandler(a.sys.Err, options))
	}
	return slog.New(slog.NewTextHandler(a.sys.Err, options))
}
