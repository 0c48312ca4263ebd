package job

import (
	"fmt"
	"strings"
	"time"
)

// Keep defines how long the rows of a version are kept, by their first time key.
type Keep struct {
	Column string `json:"column"`
	// of Column: date, timestamp without time zone or timestamp with time zone
	Type string        `json:"type"`
	For  time.Duration `json:"for,omitempty"` // 0: without limit, from From on
	// ByRecord reports that no value of Column is later than the timestamp of the record it comes from.
	ByRecord bool `json:"by_record,omitempty"`
	// From is the time before which rows were deleted while For was shorter. Late records for such rows would produce
	// incomplete rows.
	From *time.Time `json:"from,omitempty"`
}

// Cutoff is the PostgreSQL expression of the moment before which rows are expired, of the column's type.
func (k Keep) Cutoff() string {
	var moments []string
	if k.For > 0 {
		moments = append(moments, fmt.Sprintf("now() - interval '%d microseconds'", k.For.Microseconds()))
	}
	if k.From != nil {
		moments = append(moments, fmt.Sprintf("timestamptz '%s'", k.From.UTC().Format("2006-01-02 15:04:05.999999Z07:00")))
	}
	at := "greatest(" + strings.Join(moments, ", ") + ")"
	switch {
	case k.Type == "date":
		return "(" + at + " AT TIME ZONE 'UTC')::date"
	case strings.HasPrefix(k.Type, "timestamp without"):
		return "(" + at + " AT TIME ZONE 'UTC')"
	}
	return at
}

// Limits reports whether some rows are expired.
func (k *Keep) Limits() bool { return k != nil && (k.For > 0 || k.From != nil) }
