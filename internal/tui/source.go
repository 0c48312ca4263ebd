package tui

import (
	"context"
	"time"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/batchlayer"
	"github.com/kappactl/kappactl/batchlayer/schedule"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

// Source is where the interface reads from and acts through. Its calls end when their context does.
type Source interface {
	// Jobs is every job with its versions that have not ended.
	Jobs(ctx context.Context) (Overview, error)
	// Job is all that the page of one job shows.
	Job(ctx context.Context, name job.Name) (Detail, error)
	// Events returns the events of a job, newest first.
	Events(ctx context.Context, name job.Name) ([]Event, error)
	// Resolve finds the version that a verb without one is about, as the commands do.
	Resolve(ctx context.Context, name job.Name, verb ledger.Verb) (job.Ref, error)
	// Do asks the agents for an act and waits for the answer.
	Do(ctx context.Context, act Act) (ledger.Answer, error)
}

// Overview is all jobs at one moment.
type Overview struct {
	Jobs   []status.Job
	Agents int // alive
}

// Detail is one job at one moment.
type Detail struct {
	Status status.Job
	// Deployment is the newest of the job; nil when it has none.
	Deployment *ledger.Deployment
	// Facts are by version: v1, v2, …; versions that have ended may lack.
	Facts  map[string]Facts
	Agents int // alive
	// Schedule is when batch runs of the job begin; nil when it has no schedule.
	Schedule *schedule.Status
	// Layers are those of its lambda versions that have not ended, the newest first.
	Layers []batchlayer.Layers
	// Archive is the archive of its topics; nil if it has none.
	Archive *Archived
	// Experiment is the newest of the job; nil when it has had none.
	Experiment *abtest.Course
}

// Archived is the archive of a job's topics in sum.
type Archived struct {
	Files, Bytes, Behind int64
	Troubled             bool // late or stopped for a part of it
}

type (
	// Facts are what a page shows of a version beside its status.
	Facts = status.Facts
	// Check is one check of the job file.
	Check = status.Check
)

// Event is one line of a job's history.
type Event struct {
	ID      int64
	At      time.Time
	Version string // empty: of the job
	Kind    ledger.EventKind
	Message string
	By      string
}

// Act is an act that a person asked for and confirmed.
type Act struct {
	Verb       ledger.Verb
	Ref        job.Ref
	Generation int // of a rollback of the batch layer
}

// Command is the command that does the same.
func (a Act) Command() string {
	switch {
	case a.Verb.OfBatch():
		return batchCommand(a)
	case a.Verb.OfExperiment():
		return abCommand(a)
	}
	return "kappactl " + string(a.Verb) + " " + string(a.Ref.Job) + " " + a.Ref.Number.String()
}
