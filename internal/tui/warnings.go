package tui

import (
	"io"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/status"
)

// warnedFor is how long a warning must be gone before it is printed again.
const warnedFor = time.Minute

// warnings are those that were not seen in the last minute. One whose numbers changed is the same.
func (l *lines) warnings(now time.Time, name job.Name, v status.Version, reasons []reason.Reason) []line {
	var out []line
	for _, r := range reasons {
		key := string(name) + "/" + v.Version + ": " + r.Key()
		if seen, known := l.warned[key]; !known || now.Sub(seen) >= warnedFor {
			out = append(out, line{At: now, Kind: "warning", Job: name, Status: v, Text: r.Text(), Code: r.Code})
		}
		l.warned[key] = now
	}
	return out
}

// warningJSON prints a warning for programs.
func (l line) warningJSON(w io.Writer) error {
	return encode(w, struct {
		At      time.Time   `json:"at"`
		Kind    string      `json:"kind"`
		Job     job.Name    `json:"job"`
		Version string      `json:"version"`
		Message string      `json:"message"`
		Code    reason.Code `json:"message_code"`
	}{l.At.UTC(), l.Kind, l.Job, l.Status.Version, l.Text, l.Code})
}
