package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/doctor"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/reprocess/status"
	"github.com/kappactl/kappactl/speedlayer"
)

type doctorOptions struct{ *app }

func newDoctor(a *app, run func(context.Context, doctorOptions) error) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look at broker, database, rights and agents: what is wrong and what to do",
		Long: `Look at everything that kappactl needs: the settings, the brokers, the database and its version, what the role may do there,
a pooler in between, the control schema, the clocks, the agents, versions that do not go on, and for every live job whether the log still
holds what a new version would have to replay. Each line says what is wrong and what to do. It changes nothing, goes on where it can, and ends with 1 when
something does not work.`,
		Example: "  kappactl doctor\n  kappactl doctor -o json",
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), doctorOptions{a}) },
	}
}

// doctorResult is the output of doctor.
type doctorResult struct {
	OK       bool             `json:"ok"`
	Findings []doctor.Finding `json:"findings"`
}

func runDoctor(ctx context.Context, o doctorOptions) error {
	r := doctorResult{OK: true, Findings: doctor.Examine(ctx, o.deps())}
	r.OK = r.failure() == nil
	return o.outcome(ctx, r, func(w io.Writer) error { return r.print(w, o.style()) }, r.failure())
}

func (o doctorOptions) deps() doctor.Deps {
	return doctor.Deps{
		Settings: o.settings, Database: o.connect, Brokers: kafkaConfig, Positions: speedlayer.Store{}, TimeLimit: errTimeout,
		Locations: locationsOf,
		Now:       o.sys.Now,
		Explain: func(ctx context.Context, err error) (cause, next string) {
			f := explain(ctx, err)
			return f.Causes[0], f.Next
		},
		Jobs: func(ctx context.Context, pool *pg.Pool) ([]status.Job, error) {
			return reprocess.NewStore(pool).Jobs(ctx)
		},
		ResumeArchive: func(s archive.Status) string { return archiveStatus{Status: s}.next() },
	}
}

// failure is the first check that failed, as the error that doctor ends with.
func (r doctorResult) failure() error {
	for _, f := range r.Findings {
		if f.Health != doctor.Failed {
			continue
		}
		e := &codeError{Code: job.ExitFailed, Cause: f.Check + ": " + f.Detail}
		if f.Next != nil {
			e.Next = *f.Next
		}
		return e
	}
	return nil
}

func (r doctorResult) print(w io.Writer, style render.Style) error {
	t := render.NewTable("check", "health", "detail")
	tones := map[doctor.Health]render.Tone{
		doctor.OK: render.Good, doctor.Warning: render.Warn, doctor.Failed: render.Bad, doctor.Skipped: render.Dim,
	}
	for _, f := range r.Findings {
		detail := f.Detail
		if f.Next != nil && !style.People {
			detail += "; next: " + *f.Next
		}
		t.Add(render.Text(f.Check), render.Toned(tones[f.Health], string(f.Health)), render.Text(detail))
		if f.Next != nil && style.People {
			t.Add(render.Text(""), render.Text(""), render.Text("next: "+*f.Next))
		}
	}
	return t.Write(w, style)
}
