package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
)

type doctorOptions struct{ *app }

func newDoctor(a *app, run func(context.Context, doctorOptions) error) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look at broker, database, rights and agents: what is wrong and what to do",
		Long: `Look at everything that kappactl needs: the settings, the brokers, the database and its version, what the role may do there,
a pooler in between, the control schema, the clocks, the agents, and for every live job whether the log still holds what a new version
would have to replay. Each line says what is wrong and what to do. It changes nothing, goes on where it can, and ends with 1 when
something does not work.`,
		Example: "  kappactl doctor\n  kappactl doctor -o json",
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), doctorOptions{a}) },
	}
}

// finding is one thing that was looked at.
type finding struct {
	Check  string  `json:"check"`
	Health string  `json:"health"` // ok, warning, failed or skipped
	Detail string  `json:"detail"`
	Next   *string `json:"next"`
}

// The healths of a finding.
const (
	healthOK      = "ok"
	healthWarning = "warning"
	healthFailed  = "failed"
	healthSkipped = "skipped"
)

// doctorResult is what doctor prints.
type doctorResult struct {
	OK       bool      `json:"ok"`
	Findings []finding `json:"findings"`
}

// examination is a doctor at work. Its owner is the goroutine of runDoctor.
type examination struct {
	doctorOptions
	settings config.Settings
	pool     *pg.Pool
	admin    *kafka.Admin
	findings []finding
}

func (e *examination) note(check, health, next, format string, args ...any) {
	f := finding{Check: check, Health: health, Detail: fmt.Sprintf(format, args...)}
	if next != "" {
		f.Next = &next
	}
	e.findings = append(e.findings, f)
}

// failed notes an error with the cure that the command line would print.
func (e *examination) failed(ctx context.Context, check string, err error) {
	f := explain(ctx, err)
	e.note(check, healthFailed, f.Next, "%s", f.Causes[0])
}

func runDoctor(ctx context.Context, o doctorOptions) error {
	e := &examination{doctorOptions: o, findings: []finding{}}
	defer e.close()
	if e.configured(ctx) {
		e.brokers(ctx)
		if e.database(ctx) {
			e.controlled(ctx)
		}
	}
	r := doctorResult{OK: true, Findings: e.findings}
	for _, f := range r.Findings {
		r.OK = r.OK && f.Health != healthFailed
	}
	if err := o.result(r, func(w io.Writer) error { return r.print(w, o.style()) }); err != nil {
		return err
	}
	if !r.OK {
		return exitWith(job.ExitFailed)
	}
	return nil
}

func (e *examination) close() {
	if e.pool != nil {
		e.pool.Close()
	}
	if e.admin != nil {
		e.admin.Close()
	}
}

// configured reads the settings.
func (e *examination) configured(ctx context.Context) bool {
	settings, err := e.app.settings()
	if err != nil {
		e.failed(ctx, "settings", err)
		return false
	}
	e.settings = settings
	from := "no settings file"
	if settings.File != "" {
		from = settings.File
	}
	if settings.Context != "" {
		from += ", context " + settings.Context
	}
	e.note("settings", healthOK, "", "%s", from)
	return true
}

// doctorPatience is how long one server may take to answer.
const doctorPatience = 6 * time.Second

// brokers asks the brokers who they are.
func (e *examination) brokers(ctx context.Context) {
	const check = "brokers"
	k, err := kafkaConfig(ctx, e.settings)
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	admin, err := kafka.NewAdmin(k)
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	began := e.sys.Now()
	id, err := askedCluster(ctx, admin, k.Brokers, doctorPatience)
	if err != nil {
		admin.Close()
		e.failed(ctx, check, err)
		return
	}
	e.admin = admin
	e.note(check, healthOK, "", "cluster %s at %v, answered in %s", id, k.Brokers, render.Duration(e.sys.Now().Sub(began).Round(time.Millisecond)))
}

func (r doctorResult) print(w io.Writer, style render.Style) error {
	t := render.NewTable("check", "health", "detail")
	tones := map[string]render.Tone{healthOK: render.Good, healthWarning: render.Warn, healthFailed: render.Bad, healthSkipped: render.Dim}
	for _, f := range r.Findings {
		detail := f.Detail
		if f.Next != nil && !style.People {
			detail += "; next: " + *f.Next
		}
		t.Add(render.Text(f.Check), render.Toned(tones[f.Health], f.Health), render.Text(detail))
		if f.Next != nil && style.People {
			t.Add(render.Text(""), render.Text(""), render.Text("next: "+*f.Next))
		}
	}
	return t.Write(w, style)
}
