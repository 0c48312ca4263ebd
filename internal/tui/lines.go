package tui

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

// progressEvery is how far apart lines of progress are, over all jobs.
const progressEvery = 10 * time.Second

// line is one thing to print.
type line struct {
	At     time.Time
	Kind   string // phase, progress or warning
	Job    job.Name
	Status status.Version // of a warning: its version, or none when it is about the job
	Text   string         // of a warning
	Code   reason.Code    // of a warning
}

// lines decides what is due: a change of phase at once, a warning when it comes up, progress of one version on its way
// every ten seconds.
type lines struct {
	phases   map[string]string    // as last seen
	warned   map[string]time.Time // when a warning was seen last
	printed  map[string]time.Time // a version's last line
	progress time.Time            // the last line of progress of all
}

func newLines() lines {
	return lines{phases: map[string]string{}, printed: map[string]time.Time{}, warned: map[string]time.Time{}}
}

// take looks at jobs and returns what is due.
func (l *lines) take(now time.Time, jobs ...status.Job) []line {
	var out []line
	var slowest *line
	if l.progress.IsZero() {
		l.progress = now
	}
	for _, s := range jobs {
		for _, v := range s.Versions {
			name, phase := string(s.Job)+"/"+v.Version, phaseWords(v)
			before, known := l.phases[name]
			l.phases[name] = phase
			switch {
			case !known && v.Phase.Ended():
			case before != phase:
				l.printed[name] = now
				out = append(out, line{At: now, Kind: "phase", Job: s.Job, Status: v})
			case ledger.Candidate(v.Phase) &&
				(slowest == nil || l.printed[name].Before(l.printed[string(slowest.Job)+"/"+slowest.Status.Version])):
				slowest = &line{At: now, Kind: "progress", Job: s.Job, Status: v}
			}
			out = append(out, l.warnings(now, s.Job, v, v.WarningReasons)...)
		}
		out = append(out, l.warnings(now, s.Job, status.Version{}, s.WarningReasons)...)
	}
	if slowest != nil && now.Sub(l.progress) >= progressEvery {
		l.progress = now
		l.printed[string(slowest.Job)+"/"+slowest.Status.Version] = now
		out = append(out, *slowest)
	}
	return out
}

// json prints a line for programs: one object, with the fields of status.
func (l line) json(w io.Writer) error {
	if l.Kind == "warning" {
		return l.warningJSON(w)
	}
	v := l.Status
	return encode(w, struct {
		At               time.Time   `json:"at"`
		Kind             string      `json:"kind"`
		Job              job.Name    `json:"job"`
		Version          string      `json:"version"`
		Phase            job.Phase   `json:"phase"`
		Paused           bool        `json:"paused"`
		LagRecords       *int64      `json:"lag_records"`
		LagSeconds       *float64    `json:"lag_seconds"`
		RecordsPerSecond *float64    `json:"records_per_second"`
		ETASeconds       *float64    `json:"eta_seconds"`
		Verdict          job.Verdict `json:"verdict"`
		Reason           string      `json:"reason"`
		ReasonCode       reason.Code `json:"reason_code"`
		Error            string      `json:"error"`
		ErrorCode        reason.Code `json:"error_code"`
	}{
		l.At.UTC(), l.Kind, l.Job, v.Version, v.Phase, v.Paused, v.LagRecords, v.LagSeconds, v.RecordsPerSecond, v.ETASeconds,
		v.Verdict, v.Reason, v.ReasonCode, v.Error, v.ErrorCode,
	})
}

// endJSON prints how the deployment stopped.
func endJSON(w io.Writer, at time.Time, d ledger.Deployment, code job.ExitCode) error {
	return encode(w, struct {
		At       time.Time           `json:"at"`
		Kind     string              `json:"kind"`
		Job      job.Name            `json:"job"`
		Version  string              `json:"version"`
		Phase    job.Phase           `json:"phase"`
		State    job.DeploymentState `json:"state"`
		ExitCode job.ExitCode        `json:"exit_code"`
		Message  string              `json:"message"`
		Code     reason.Code         `json:"message_code"`
	}{at.UTC(), "end", d.Job, d.Number.String(), d.Phase, d.State, code, d.Message, d.MessageCode})
}

func encode(w io.Writer, v any) error {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		return fmt.Errorf("print a line: %w", err)
	}
	return nil
}
