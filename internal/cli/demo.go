package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/devstack"
	"github.com/kappactl/kappactl/internal/devstack/postgres"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
)

type demoOptions struct {
	*app
	data        string
	postgresBin string
}

func newDemo(a *app, run func(context.Context, demoOptions) error) *cobra.Command {
	o := demoOptions{app: a}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job end to end on an embedded stack, with real output",
		Long: `Start the embedded stack in a temporary folder, load sample page views, and take a job through its life: deploy, change its
SQL, deploy beside the old version, promote, roll back, promote again, retire, and verify against the log; then make it one of mode
lambda with history beyond the topic's, refuse a bad batch generation, and go back. It runs the commands that it prints. The exit code
is not 0 when anything is not as promised.`,
		Example:     "  kappactl demo",
		Args:        exactly(),
		Annotations: map[string]string{timeoutKey: "5m"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.data, "data", "", "`FOLDER` to keep (default: a temporary one, removed at the end)")
	cmd.Flags().StringVar(&o.postgresBin, "postgres-bin", "",
		"`FOLDER` of the PostgreSQL server binaries (default: found by itself)")
	return cmd
}

// demo is a guided run: it prints what it does and compares what comes out with what has to.
type demo struct {
	*app
	dir    string // job files and data; commands run here
	config string // the stack's settings file
	pool   *pg.Pool

	brokers []string
}

func runDemo(ctx context.Context, o demoOptions) error {
	started := o.sys.Now()
	dir := o.data
	if dir == "" {
		temp, err := postgres.TempFolder()
		if err != nil {
			return fmt.Errorf("make the demo's folder: %w", err)
		}
		defer func() { _ = errors.Join(devstack.Remove(filepath.Join(temp, "stack")), os.RemoveAll(temp)) }()
		dir = temp
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("find the demo's folder: %w", err)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return &job.Refusal{
			Code: job.ExitUsage, Cause: dir + " is not empty, and the demo begins afresh",
			Next: "kappactl demo --data ANOTHER",
		}
	}
	d := &demo{app: o.app, dir: dir}
	d.say("kappactl demo: a local Kafka, PostgreSQL and agent in %s", dir)
	stack := devOptions{app: o.app, data: filepath.Join(dir, "stack"), postgresBin: o.postgresBin, failsOnly: true}
	err = withStack(ctx, stack, func(ctx context.Context, up *running) error {
		d.config, d.pool, d.brokers = up.config, up.pool, up.brokers
		return d.play(ctx)
	})
	if err != nil {
		return fmt.Errorf("the demo went wrong: %w", err)
	}
	d.say("All as promised, in %s.", render.Duration(o.sys.Now().Sub(started)))
	return nil
}

func (d *demo) say(format string, args ...any) {
	d.print("\n" + d.style().Paint(render.Strong, "# "+fmt.Sprintf(format, args...)))
}

func (d *demo) command(line string) {
	d.print(d.style().Paint(render.Good, "$ "+line))
}

// print shows a line. A demo that nobody can see any more has no use for the error.
func (d *demo) print(line string) { _, _ = fmt.Fprintln(d.sys.Out, line) }

// run runs a command of this binary as a user would, and fails when it does not end with want.
func (d *demo) run(ctx context.Context, want job.ExitCode, args ...string) error {
	line := "kappactl " + strings.Join(args, " ")
	d.command(line)
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = d.dir, d.sys.Out, d.sys.Out
	cmd.Env = append(ownEnvironment(os.Environ()), "KAPPACTL_CONFIG="+d.config)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("run %s: %w", line, err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if code := cmd.ProcessState.ExitCode(); code != int(want) {
		return fmt.Errorf("%s ended with %d and should have with %d", line, code, want)
	}
	return nil
}

// ownEnvironment leaves out what would lead the commands to another installation.
func ownEnvironment(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(e string) bool {
		return strings.HasPrefix(e, "KAPPACTL_") || strings.HasPrefix(e, "PG")
	})
}

// file writes a job file and shows it, or what changed in it.
func (d *demo) file(name, text string) error {
	path := filepath.Join(d.dir, name)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	d.command("cat " + name)
	old := strings.Split(string(before), "\n")
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case len(before) == 0 || slices.Contains(old, line):
			d.print(line)
		default:
			d.print(d.style().Paint(render.Warn, line+"   # new"))
		}
	}
	return nil
}

// view shows the serving view and fails when it is not want.
func (d *demo) view(ctx context.Context, want []demoTotal) error {
	got, err := d.totals(ctx, demoQuery)
	if err != nil {
		return err
	}
	d.command(`psql "$DSN" -c "` + demoQuery + `"`)
	if err := d.show(got); err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the view shows %v and should show %v", got, want)
	}
	return nil
}

// viewSoon waits until the view is want, at most ten seconds, and shows it.
func (d *demo) viewSoon(ctx context.Context, want []demoTotal) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	limit, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		got, err := d.totals(ctx, demoQuery)
		if err != nil {
			return err
		}
		if slices.Equal(got, want) {
			return d.view(ctx, want)
		}
		select {
		case <-limit.Done():
			return d.view(ctx, want)
		case <-tick.C:
		}
	}
}

func (d *demo) totals(ctx context.Context, sql string) ([]demoTotal, error) {
	rows, err := d.pool.Query(ctx, sql)
	if err != nil {
		return nil, fmt.Errorf("read the view: %w", err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[demoTotal])
	if err != nil {
		return nil, fmt.Errorf("read the view: %w", err)
	}
	return got, nil
}

// expose records a subject with its arm.
func (d *demo) expose(ctx context.Context, subject string) error {
	sql := "SELECT kappactl.expose('pageviews', '" + subject + "')"
	d.command(`psql "$DSN" -c "` + sql + `"`)
	var arm string
	if err := d.pool.QueryRow(ctx, sql).Scan(&arm); err != nil {
		return fmt.Errorf("record a subject: %w", err)
	}
	d.print(arm)
	return nil
}

// sideBySide shows both versions' tables and fails when they are not a and b.
func (d *demo) sideBySide(ctx context.Context, a, b []demoTotal) error {
	d.say("Both versions side by side, from their own tables:")
	for i, want := range [][]demoTotal{a, b} {
		got, err := d.totals(ctx, strings.NewReplacer("pageviews_hourly", fmt.Sprintf("pageviews__v%d", i+1), "(total_ms)",
			"(total_ms__s)").Replace(demoQuery))
		if err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("v%d holds %v and should hold %v", i+1, got, want)
		}
	}
	t := render.NewTable("url", ">views v1", ">views v2")
	for i := range a {
		t.Add(render.Text(a[i].URL), render.Text(render.Count(a[i].Views)), render.Text(render.Count(b[i].Views)))
	}
	style := d.style()
	style.People = true
	return t.Write(d.sys.Out, style)
}

func (d *demo) show(rows []demoTotal) error {
	t := render.NewTable("url", ">views", ">total ms")
	for _, r := range rows {
		t.Add(render.Text(r.URL), render.Text(render.Count(r.Views)), render.Text(render.Count(r.Total)))
	}
	style := d.style()
	style.People = true
	return t.Write(d.sys.Out, style)
}
