// Package doctor examines what kappactl needs: brokers, database, rights, agents, jobs, logs and archives. It changes
// nothing.
package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/status"
)

// Health is how one thing is.
type Health string

// The healths of a finding.
const (
	OK      Health = "ok"
	Warning Health = "warning"
	Failed  Health = "failed"
	Skipped Health = "skipped"
)

// Finding is one thing that was examined.
type Finding struct {
	Check  string  `json:"check"`
	Health Health  `json:"health"`
	Detail string  `json:"detail"`
	Next   *string `json:"next"` // what to do; nil: nothing
}

// Deps holds the connections and settings that an examination uses.
type Deps struct {
	Settings func() (config.Settings, error)
	// Database opens the database of the settings.
	Database func(context.Context, config.Settings) (*pg.Pool, error)
	// Brokers returns how to reach the brokers of the settings.
	Brokers func(context.Context, config.Settings) (kafka.Config, error)
	// Explain returns the cause of an error and what to do, as a command would print them.
	Explain func(context.Context, error) (cause, next string)
	// Jobs lists the jobs of a control schema with their versions.
	Jobs      func(context.Context, *pg.Pool) ([]status.Job, error)
	Positions plan.Positions
	// Locations opens the locations of archives as the settings reach them.
	Locations func(config.Settings) *archive.Locations
	// ResumeArchive returns the command with which a partition of an archive goes on after a fault.
	ResumeArchive func(archive.Status) string
	// TimeLimit is the cause with which the time for a server ends.
	TimeLimit error
	Now       func() time.Time
}

// patience is how long one server may take to answer.
const patience = 6 * time.Second

// examination is a doctor at work. One goroutine owns it.
type examination struct {
	Deps
	settings config.Settings
	pool     *pg.Pool
	admin    *kafka.Admin
	findings []Finding
	facts    serverFacts
}

// Examine examines one thing after the other. It skips everything that depends on something that does not work.
func Examine(ctx context.Context, d Deps) []Finding {
	e := &examination{Deps: d, findings: []Finding{}}
	defer e.close()
	if !e.configured(ctx) {
		return e.findings
	}
	e.passwordFiles()
	e.brokers(ctx)
	if e.database(ctx) {
		e.brokerRights(ctx)
		e.leftovers(ctx)
		e.controlled(ctx)
	}
	return e.findings
}

func (e *examination) close() {
	if e.pool != nil {
		e.pool.Close()
	}
	if e.admin != nil {
		e.admin.Close()
	}
}

func (e *examination) note(check string, health Health, next, format string, args ...any) {
	f := Finding{Check: check, Health: health, Detail: fmt.Sprintf(format, args...)}
	if next != "" {
		f.Next = &next
	}
	e.findings = append(e.findings, f)
}

// failed notes an error with the cure that the command line would print.
func (e *examination) failed(ctx context.Context, check string, err error) {
	cause, next := e.Explain(ctx, err)
	e.note(check, Failed, next, "%s", cause)
}

// configured reads the settings.
func (e *examination) configured(ctx context.Context) bool {
	settings, err := e.Settings()
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
	e.note("settings", OK, "", "%s", from)
	return true
}

// brokers asks the brokers which cluster they are.
func (e *examination) brokers(ctx context.Context) {
	const check = "brokers"
	k, err := e.Brokers(ctx, e.settings)
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	admin, err := kafka.NewAdmin(k)
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	began := e.Now()
	id, err := admin.ClusterWithin(ctx, patience)
	if err != nil {
		admin.Close()
		e.failed(ctx, check, err)
		return
	}
	e.admin = admin
	e.note(check, OK, "", "cluster %s at %v, answered in %s", id, k.Brokers,
		render.Duration(e.Now().Sub(began).Round(time.Millisecond)))
	e.brokerEncryption(k)
}

// controlled examines what needs the control schema: agents, jobs and archives.
func (e *examination) controlled(ctx context.Context) {
	if err := pg.CheckSchema(ctx, e.pool); err != nil {
		e.failed(ctx, "control schema", err)
		return
	}
	e.note("control schema", OK, "", "%q is at version %d", e.pool.Schema(), pg.SchemaVersion)
	e.agents(ctx)
	jobs, err := e.Jobs(ctx, e.pool)
	if err != nil {
		e.failed(ctx, "jobs", err)
		return
	}
	e.schemas(ctx, jobs)
	for _, j := range jobs {
		e.versions(j)
		e.retention(ctx, j)
	}
	e.archives(ctx)
}
