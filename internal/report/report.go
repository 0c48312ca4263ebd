package report

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess"
)

// Schema is raised when a field of the report changes its meaning; new fields do not raise it.
const Schema = 1

// Report is one deployment. Its JSON is documented and only ever grows; null means unknown, or not yet.
type Report struct {
	Schema      int                     `json:"schema"`
	At          time.Time               `json:"at"` // when it was made
	Job         job.Name                `json:"job"`
	Team        string                  `json:"team"`
	View        string                  `json:"view"`
	Version     string                  `json:"version"`
	Previous    *string                 `json:"previous"` // the version that was live at stage
	Hash        string                  `json:"hash"`
	Deployment  int64                   `json:"deployment"`
	State       job.DeploymentState     `json:"state"`
	Phase       job.Phase               `json:"phase"`
	ExitCode    *int                    `json:"exit_code"`
	Message     string                  `json:"message"`
	Next        string                  `json:"next"`
	By          string                  `json:"by"`
	GitRevision string                  `json:"git_revision"`
	CreatedAt   time.Time               `json:"created_at"`
	PromotedAt  *time.Time              `json:"promoted_at"`
	EndedAt     *time.Time              `json:"ended_at"`
	Records     int64                   `json:"records"`
	DeadLetters int64                   `json:"dead_letters"`
	Plan        Plan                    `json:"plan"`
	Timings     reprocess.Timings       `json:"timings"`
	Checks      []reprocess.CheckStatus `json:"checks"`
	Lag         []reprocess.LagPoint    `json:"lag"`
	Events      []reprocess.PastEvent   `json:"events"`
	File        string                  `json:"file"` // the job file
	// PreviousFile is the job file of the version that was live at stage; empty when there was none, or it was adopted.
	PreviousFile string `json:"previous_file"`
}

// Plan is what the version was to read, and how it differs from the one that was live.
type Plan struct {
	Changes    []job.Change `json:"changes"`
	Partitions []Range      `json:"partitions"` // empty once the version is retired
	Offsets    int64        `json:"offsets"`    // in them
}

// Range is what a version read of one partition in its replay, To exclusive.
type Range struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"`
}
