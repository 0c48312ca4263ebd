package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// maxExamples is the largest number of differences in a report.
const maxExamples = 10

// Report is the result of a comparison.
type Report struct {
	Job     job.Name `json:"job"`
	Version string   `json:"version"`
	// Equal reports whether the version's rows and dead letters match the log.
	Equal bool `json:"equal"`
	// Rows is the number of served rows that were compared. Skipped is the number that were not, because some of their
	// records are below the log start (only with FromLogStart).
	Rows    int64 `json:"rows"`
	Skipped int64 `json:"skipped"`
	// ComparedAfter is the time key after which rows were compared, with FromLogStart.
	ComparedAfter string `json:"compared_after,omitempty"`
	// Records is the number of records read from the log, including dead letters.
	Records     int64 `json:"records"`
	DeadLetters int64 `json:"dead_letters"` // records in the log that cannot be processed
	// Differences counts rows that are missing, unexpected or different, and dead letters that are stored wrongly or
	// missing.
	Differences int64       `json:"differences"`
	Examples    []Example   `json:"examples"` // at most ten
	Seconds     float64     `json:"seconds"`
	Partitions  []Partition `json:"partitions"`
}

// Partition is the range that was read from one partition.
type Partition struct {
	Topic     string      `json:"topic"`
	Partition int32       `json:"partition"`
	From      int64       `json:"from"`
	To        int64       `json:"to"`
	Gaps      []job.Range `json:"gaps,omitempty"` // accepted gaps within the range
}

// Example is one difference. Values are texts by column; nil is NULL. Served or Expected is nil if that side has no
// such row.
type Example struct {
	Key      map[string]*string `json:"key"`
	Served   map[string]*string `json:"served"`
	Expected map[string]*string `json:"expected"`
}

func (e Example) String() string {
	return fmt.Sprintf("%s: served %s, expected %s", show(e.Key), show(e.Served), show(e.Expected))
}

func show(row map[string]*string) string {
	if row == nil {
		return "no row"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(row)) {
		value := "NULL"
		if row[name] != nil {
			value = *row[name]
		}
		parts = append(parts, name+"="+value)
	}
	if len(parts) == 0 {
		return "the row"
	}
	return strings.Join(parts, " ")
}
