package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/compare"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/render"
)

type compareOptions struct {
	*app
	target  target
	rounds  int
	watch   time.Duration
	maxRate string
	dir     string
	connect []string // global flags that reach the servers, as given
}

func newCompare(a *app, run func(context.Context, compareOptions) error) *cobra.Command {
	o := compareOptions{app: a}
	cmd := &cobra.Command{
		Use:   "compare JOB [VERSION]",
		Short: "Run a job as Kappa and as Lambda, and measure what each costs",
		Long: `Run the job three times over the same topics: as kappa from the log, as kappa from the archive, and as lambda with two batch
runs. It measures how long a redeploy takes, freshness, CPU time of the agent, bytes stored, bytes read from the brokers, WAL, and whether
the results equal one pass over the log. The ways take turns over the rounds; the table shows the median and the range. It hosts agents
of its own in control schemas of their own, writes an archive into a temporary folder, produces nothing to the topics, and drops all that
it made. PostgreSQL's own CPU time is not seen.`,
		Example: "  kappactl compare pageviews\n  kappactl compare pageviews --rounds 1 --watch 10s --max-rate 20MB/s",
		Args:    between([]string{"JOB"}, []string{"VERSION"}),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.target, err = parseTarget(cmd, args); err != nil {
				return err
			}
			if o.rounds < 1 || o.rounds > 100 {
				return usage(cmd, "--rounds is 1 to 100")
			}
			if _, err := job.ParseRate(o.maxRate); o.maxRate != "" && err != nil {
				return usage(cmd, "--max-rate: %v", err)
			}
			o.connect = connecting(cmd)
			return run(cmd.Context(), o)
		},
		Annotations: map[string]string{timeoutKey: noTimeout},
	}
	cmd.Flags().IntVar(&o.rounds, "rounds", 3, "how often each way is measured")
	cmd.Flags().DurationVar(&o.watch, "watch", 30*time.Second, "how long freshness is measured in each round")
	cmd.Flags().StringVar(&o.maxRate, "max-rate", "", "`RATE` that replays keep to, such as 20MB/s (default: no limit)")
	cmd.Flags().StringVar(&o.dir, "dir", ".",
		"`FOLDER` for the JSON document and the HTML page; it is made when it is not there")
	return cmd
}

// connecting are the global flags of a command line that choose servers, as arguments of another command.
func connecting(cmd *cobra.Command) []string {
	var out []string
	for _, name := range []string{"config", "context", "brokers", "dsn"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			out = append(out, "--"+name, f.Value.String())
		}
	}
	return out
}

// comparison is the document of a comparison, with where it was written.
type comparison struct {
	compare.Comparison
	Report reportFiles `json:"report"`
}

func runCompare(ctx context.Context, o compareOptions) (err error) {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	ref, err := c.shown(ctx, o.target)
	if err != nil {
		return err
	}
	file, err := c.store.File(ctx, ref)
	if err != nil {
		return err
	}
	if file == "" {
		return &job.Refusal{
			Code: job.ExitConflict, Cause: ref.String() + " was adopted and has no job file",
			Next: "name a version that was deployed",
		}
	}
	spec, err := job.Parse(ref.String(), []byte(file))
	if err != nil {
		return err
	}
	brokers, err := kafkaConfig(ctx, c.settings)
	if err != nil {
		return err
	}
	admin, err := kafka.NewAdmin(brokers)
	if err != nil {
		return err
	}
	defer admin.Close()
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	temp, err := os.MkdirTemp("", "kappactl-compare-")
	if err != nil {
		return fmt.Errorf("make a folder for archives: %w", err)
	}
	defer os.RemoveAll(temp)
	found, err := compare.Run(ctx, compare.Config{
		Program: program, Args: o.connect, Env: os.Environ(), Temp: temp, Pool: pgConfig(c.settings), Brokers: admin,
		Job:  ref,
		File: []byte(file), Topics: spec.Source.Topics, Rounds: o.rounds, Watch: o.watch, MaxRate: o.maxRate,
		Say: o.progress, Now: o.sys.Now,
	})
	if err != nil {
		return err
	}
	return o.compared(ctx, ref, found)
}

// compared prints a comparison and writes its files; results that are not exact end with 5.
func (o compareOptions) compared(ctx context.Context, ref job.Ref, found compare.Comparison) error {
	out := comparison{Comparison: found}
	if err := os.MkdirAll(o.dir, 0o755); err != nil { //nolint:gosec // documents
		return &job.Refusal{Code: job.ExitUsage, Cause: err.Error(), Next: "name another folder", Err: err}
	}
	base := filepath.Join(o.dir, fmt.Sprintf("%s-compare", ref.Job))
	out.Report = reportFiles{JSON: base + ".json", HTML: base + ".html"}
	for path, write := range map[string]func(io.Writer) error{
		out.Report.JSON: func(w io.Writer) error { return render.JSON(w, found) },
		out.Report.HTML: func(w io.Writer) error { return compare.HTML(w, found) },
	} {
		if err := writeFile(path, write); err != nil {
			return &job.Refusal{Code: job.ExitUsage, Cause: err.Error(), Next: "name another folder", Err: err}
		}
	}
	var failed error
	if !found.Exact() {
		failed = &job.Refusal{
			Code: job.ExitChecks, Cause: fmt.Sprintf("%s served other results than one pass over its log gives", ref),
			Next: "kappactl verify " + string(ref.Job),
		}
	}
	return o.outcome(ctx, out, func(w io.Writer) error { return printComparison(w, o.style(), out) }, failed)
}

func printComparison(w io.Writer, style render.Style, c comparison) error {
	titles := []string{"figure"}
	for _, way := range compare.Ways() {
		titles = append(titles, ">"+way.String())
	}
	t := render.NewTable(titles...)
	for _, f := range compare.Figures() {
		cells := []render.Cell{render.Text(f.Name)}
		for _, way := range compare.Ways() {
			cells = append(cells, render.Text(f.Cell(c.Ways[way], "-")))
		}
		t.Add(cells...)
	}
	exact := []render.Cell{render.Text("exact")}
	for _, way := range compare.Ways() {
		equal := !slices.ContainsFunc(c.Ways[way], func(m compare.Measure) bool { return !m.Equal })
		exact = append(exact, render.Text(map[bool]string{true: "yes", false: "no"}[equal]))
	}
	t.Add(exact...)
	if err := t.Write(w, style); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s over %s; others wrote %s of WAL a second before\nreport: %s\nreport: %s\n",
		render.Plural(c.Records, "record"), render.Plural(int64(c.Rounds), "round"), render.Bytes(int64(c.IdleWAL)),
		c.Report.HTML, c.Report.JSON)
	return err
}
