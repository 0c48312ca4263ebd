package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/estimate"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/readiness"
	"github.com/kappactl/kappactl/serving"
	"github.com/kappactl/kappactl/speedlayer"
)

type planOptions struct {
	*app
	file  jobFile
	quick bool // no sample

	detailedExitCode bool
}

func newPlan(a *app, run func(context.Context, planOptions) error) *cobra.Command {
	o := planOptions{app: a}
	since := ""
	cmd := &cobra.Command{
		Use:   "plan FILE...",
		Short: "Show what deploy would do, and what it would cost",
		Long: `Show what deploying the file would do: the version it makes, what changes against the live one, the ranges of the topics that
are replayed and what the log no longer holds, how many records and bytes that is, how long it takes, how much disk and WAL
PostgreSQL needs, which columns the view gains, what reads the view, and what people added to the live table by hand, which the
new one will not have. Nothing is written. Records, bytes, rows and disk are measured on up to 200,000 records, tried out in
temporary tables that are rolled back; "sampled" says how many. What deploy would refuse is listed, and ends it with the code that
deploy would end with.

-o markdown prints a comment for a pull request.

FILE is a job file, a folder of job files, or - for standard input. Its variables, ${NAME}, get their values by --set, --vars or the environment.`,
		Example: "  kappactl plan examples/pageviews.yaml\n  kappactl plan examples/pageviews.yaml -o json\n" +
			"  kappactl plan job.yaml --vars staging.env --set TOPIC=pageviews-2\n  kappactl plan jobs/ --changed-since origin/main -o markdown",
		Args:        several,
		Annotations: map[string]string{timeoutKey: "2m", outputKey: markdownFormat},
		RunE: func(cmd *cobra.Command, args []string) error {
			files := jobFiles{app: a, args: args, flags: &o.file, since: since}
			return files.each(cmd.Context(), func(ctx context.Context, a *app, path string) error {
				o := o
				o.app, o.file.path = a, path
				return run(ctx, o)
			})
		},
	}
	o.file.flags(cmd.Flags())
	cmd.Flags().StringVar(&since, "changed-since", "",
		"plan only the job files that differ from where the branch left this `REVISION` of their git repository")
	cmd.Flags().BoolVar(&o.detailedExitCode, "detailed-exitcode", false, "exit 10 when deploy would have nothing to do")
	cmd.Flags().BoolVar(&o.quick, "quick", false, "read no records: without estimates of bytes, rows, disk and time")
	return cmd
}

// planResult is the output of plan. null means unknown.
type planResult struct {
	Job      job.Name        `json:"job"`
	Version  string          `json:"version"`
	Action   string          `json:"action"` // stage, resume, flip, apply or nothing
	Live     *string         `json:"live"`
	Hash     string          `json:"hash"`
	Changes  []job.Change    `json:"changes"`
	Diff     string          `json:"diff"` // of the job file, from live's; unified, empty: none
	View     planView        `json:"view"`
	Replay   estimate.Replay `json:"replay"`
	Refusals []planRefusal   `json:"refusals"`
	ExitCode job.ExitCode    `json:"exit_code"`
	Checks   []planCheck     `json:"checks"`
	Lost     []planLoss      `json:"lost"`
	RowsLost *int64          `json:"rows_lost"` // of live's view, older than what is covered
	Warnings []string        `json:"warnings"`
}

type planView struct {
	Name      string             `json:"name"`
	Added     []planColumn       `json:"added"`
	Removed   []planColumn       `json:"removed"`
	ReadBy    []string           `json:"read_by"`
	Additions []serving.Addition `json:"additions"` // to the live table, by hand
}

type planColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

type planRefusal struct {
	ExitCode  job.ExitCode `json:"exit_code"`
	Cause     string       `json:"cause"`
	CauseCode reason.Code  `json:"cause_code"`
	Next      string       `json:"next"`
}

type planLoss struct {
	Topic     string             `json:"topic"`
	Partition int32              `json:"partition"`
	Kind      readiness.LossKind `json:"kind"`
	Live      int64              `json:"live_from"`
	Candidate int64              `json:"candidate_from"` // -1: not read
	LiveSince *time.Time         `json:"live_since"`
	Since     *time.Time         `json:"candidate_since"`
}

func runPlan(ctx context.Context, o planOptions) error {
	c, err := o.compile(ctx, o.file)
	if err != nil {
		return err
	}
	if err := o.placeArchive(c.spec); err != nil {
		return err
	}
	cl, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := o.confined(ctx, c, cl.pool); err != nil {
		return withNext(err, "kappactl check "+o.file.String())
	}
	cluster, err := cl.clusterID(ctx, c.spec.Source.Topics)
	if err != nil {
		return err
	}
	admin, brokers, err := cl.admin(ctx)
	if err != nil {
		return err
	}
	defer admin.Close()
	staging := deployOptions{app: o.app, file: o.file}.staging(ctx, c, cluster)
	p, err := cl.store.Plan(ctx, staging,
		plan.Sources{Brokers: admin, History: cl.history(admin, c.spec), Positions: speedlayer.Store{}}, o.sys.Now())
	if err != nil {
		return err
	}
	result := o.outline(c, p)
	o.current().summary = result.words()
	if err := o.survey(ctx, cl, c, p, &result); err != nil {
		return err
	}
	if err := result.disallowed(ctx, o, cl, c.spec); err != nil {
		return err
	}
	if !o.quick && p.Frozen != nil && c.spec.Engine == job.SQL {
		if err := o.estimate(ctx, cl, c, p, brokers, &result); err != nil {
			return err
		}
	}
	if o.detailedExitCode && result.Action == "nothing" && result.ExitCode == job.ExitOK {
		result.ExitCode = job.ExitNothing
	}
	if o.flags.output.value == markdownFormat {
		o.current().failed = true
		return errors.Join(o.page(result.markdown(o.file.path)), result.failure())
	}
	return o.outcome(ctx, result, func(w io.Writer) error { return result.print(w, o.style()) }, result.failure())
}

// disallowed adds the refusal of a program that no agent runs.
func (r *planResult) disallowed(ctx context.Context, o planOptions, cl *client, spec *job.Spec) error {
	err := cl.allowed(ctx, spec)
	var refusal *job.Refusal
	if errors.As(err, &refusal) {
		r.refused(deployOptions{app: o.app, file: o.file}, refusal)
		return nil
	}
	return err
}

// failure is the error that plan ends with: the first refusal that deploy would end with.
func (r planResult) failure() error {
	if len(r.Refusals) == 0 {
		return exitWith(r.ExitCode)
	}
	first := r.Refusals[0]
	return &codeError{Code: r.ExitCode, Cause: first.Cause, Next: first.Next}
}

// outline fills in what needs no further query.
func (o planOptions) outline(c *compiled, p plan.Deploy) planResult {
	r := planResult{
		Job: c.spec.Job, Version: p.Number.String(), Hash: c.hash, Action: planAction(p), Changes: []job.Change{},
		Refusals: []planRefusal{}, Lost: []planLoss{}, Warnings: []string{},
		View: planView{
			Name: c.spec.Serve.View.String(), Added: []planColumn{}, Removed: []planColumn{}, ReadBy: []string{},
			Additions: []serving.Addition{},
		},
	}
	if p.Number == 0 {
		r.Version = ""
	}
	if p.Live != nil {
		live := p.Live.Number.String()
		r.Live = &live
		if !p.Live.Adopted() { // what was adopted has no job file
			r.Changes = append(r.Changes, job.Changes(p.LiveSpec, c.spec)...)
			r.Diff = textDiff(fmt.Sprintf("%s %s (live)", p.Job, live), p.LiveFile, o.file.path, string(c.spec.Expanded))
		}
		added, removed := p.Columns(c.query.Layout)
		for _, v := range added {
			r.View.Added = append(r.View.Added, planColumn{v.Name, v.Type})
		}
		for _, v := range removed {
			r.View.Removed = append(r.View.Removed, planColumn{v.Name, v.Type})
		}
	}
	for _, l := range p.Lost.Losses {
		r.Lost = append(r.Lost, planLoss{
			Topic: l.Live.Topic, Partition: l.Live.ID, Kind: l.Kind, Live: l.Live.From, Candidate: l.Candidate,
			LiveSince: l.LiveSince, Since: l.Since,
		})
	}
	r.RowsLost = p.Lost.Older
	for _, w := range p.Warnings {
		r.Warnings = append(r.Warnings, w.Text())
	}
	r.Warnings = append(r.Warnings, guarantees(c.spec)...)
	for _, err := range p.Refusals {
		r.refused(deployOptions{app: o.app, file: o.file}, err)
	}
	r.Replay = estimate.New(c.spec, p)
	r.Checks = planChecks(c.spec, r.Live)
	return r
}

// refused adds why deploy would refuse; nil adds nothing.
func (r *planResult) refused(o deployOptions, err error) {
	if err == nil {
		return
	}
	f := explain(context.Background(), o.named(err))
	r.Refusals = append(r.Refusals, planRefusal{
		ExitCode: f.Code, Cause: f.Causes[0], CauseCode: reason.Of(err).Code,
		Next: f.Next,
	})
	if r.ExitCode == job.ExitOK {
		r.ExitCode = f.Code
	}
}

func planAction(p plan.Deploy) string {
	switch {
	case p.Number == 0:
		return "refuse"
	case p.Nothing:
		return "nothing"
	case p.Staged.Live:
		return "apply" // what is not part of the hash, to the live version
	case p.Resumed:
		return "resume"
	case p.FlipOnly:
		return "flip"
	}
	return "stage"
}

// survey asks the database what hangs on the view and on the live table.
func (o planOptions) survey(ctx context.Context, cl *client, c *compiled, p plan.Deploy, r *planResult) error {
	names, err := views().Readers(ctx, cl.pool, c.spec.Serve.View)
	if err != nil {
		return err
	}
	r.View.ReadBy = append(r.View.ReadBy, names...)
	if p.Live == nil {
		return nil
	}
	additions, err := views().Additions(ctx, cl.pool, *p.Live, c.spec.Serve.View, p.LiveView)
	if err != nil {
		return err
	}
	r.View.Additions = append(r.View.Additions, additions...)
	return nil
}
