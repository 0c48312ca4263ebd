package report

import (
	"time"

	"github.com/kappactl/kappactl/batchlayer"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

// Schema is the version of the JSON document. A change of a field's meaning raises it; new fields do not.
const Schema = 1

// Report describes one deployment. Its JSON is documented; fields are only added. null means unknown or not yet.
type Report struct {
	Schema      int                 `json:"schema"`
	At          time.Time           `json:"at"` // when the report was made
	Job         job.Name            `json:"job"`
	Team        string              `json:"team"`
	View        string              `json:"view"`
	Version     string              `json:"version"`
	Previous    *string             `json:"previous"` // the version that was live at stage
	Hash        string              `json:"hash"`
	Deployment  int64               `json:"deployment"`
	State       job.DeploymentState `json:"state"`
	Phase       job.Phase           `json:"phase"`
	ExitCode    *int                `json:"exit_code"`
	Message     string              `json:"message"`
	MessageCode reason.Code         `json:"message_code"`
	Next        string              `json:"next"`
	By          string              `json:"by"`
	GitRevision string              `json:"git_revision"`
	CreatedAt   time.Time           `json:"created_at"`
	PromotedAt  *time.Time          `json:"promoted_at"`
	EndedAt     *time.Time          `json:"ended_at"`
	Records     int64               `json:"records"`
	DeadLetters int64               `json:"dead_letters"`
	Plan        Plan                `json:"plan"`
	Timings     ledger.Timings      `json:"timings"`
	Checks      []status.Check      `json:"checks"`
	Lag         []ledger.LagPoint   `json:"lag"`
	Events      []ledger.PastEvent  `json:"events"`
	// Layers are those of a lambda version; null of another one and of one that has ended.
	Layers *batchlayer.Layers `json:"layers"`
	File   string             `json:"file"` // the job file
	// PreviousFile is the job file of the version that was live at stage; empty if there was none or it was adopted.
	PreviousFile string `json:"previous_file"`
}

// Plan holds the ranges that the version would read, and its differences from the live version.
type Plan struct {
	Changes    []job.Change `json:"changes"`
	Partitions []Range      `json:"partitions"` // empty once the version is retired
	Offsets    int64        `json:"offsets"`    // number of offsets in them
}

// Range is the offset range that the replay read from one partition; To is exclusive.
type Range struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"`
}
