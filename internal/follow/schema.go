package follow

import (
	"encoding/json"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// Schema is raised when a field of the event stream changes its meaning; new fields and kinds do not raise it.
const Schema = 1

// Kind is the kind of a line.
type Kind string

// The kinds of lines.
const (
	KindStart    Kind = "start"
	KindPhase    Kind = "phase"
	KindVerdict  Kind = "verdict"
	KindProgress Kind = "progress"
	KindCheck    Kind = "check"
	KindWarning  Kind = "warning"
	KindEvent    Kind = "event"
	KindEnd      Kind = "end"
)

// Head holds the members of every line.
type Head struct {
	At   time.Time `json:"at"`
	Kind Kind      `json:"kind"`
}

// about is the head of a line about a version. Version is empty when the line is about the job, Job when it is about
// neither.
type about struct {
	Head
	Job     job.Name `json:"job"`
	Version string   `json:"version"`
}

type start struct {
	about
	Schema     int       `json:"schema"`
	Deployment int64     `json:"deployment"` // 0: every deployment is followed
	Phase      job.Phase `json:"phase"`
	Resumed    bool      `json:"resumed"`
}

type phase struct {
	about
	Phase     job.Phase           `json:"phase"`
	State     job.DeploymentState `json:"state"` // empty: no deployment of the version is open
	Paused    bool                `json:"paused"`
	Error     string              `json:"error"`
	ErrorCode reason.Code         `json:"error_code"`
}

type verdict struct {
	about
	Verdict    job.Verdict `json:"verdict"`
	Reason     string      `json:"reason"`
	ReasonCode reason.Code `json:"reason_code"`
}

type progress struct {
	about
	Records          int64    `json:"records"`
	LagRecords       *int64   `json:"lag_records"`
	LagSeconds       *float64 `json:"lag_seconds"`
	RecordsPerSecond *float64 `json:"records_per_second"`
	ETASeconds       *float64 `json:"eta_seconds"`
}

// moved reports whether p says anything that q did not. Rates change without anything having moved.
func (p progress) moved(q progress) bool {
	return p.Records != q.Records || !equal(p.LagRecords, q.LagRecords) || !equal(p.LagSeconds, q.LagSeconds)
}

func equal[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return *a == *b
}

type check struct {
	about
	Check      string      `json:"check"`
	Outcome    string      `json:"outcome"`
	Detail     string      `json:"detail"`
	DetailCode reason.Code `json:"detail_code"`
}

type warning struct {
	about
	Message     string      `json:"message"`
	MessageCode reason.Code `json:"message_code"` // empty where the warning is the command's
}

type event struct {
	about
	Event       string          `json:"event"`
	Message     string          `json:"message"`
	MessageCode reason.Code     `json:"message_code"`
	Detail      json.RawMessage `json:"detail"`
	By          string          `json:"by"`
}
