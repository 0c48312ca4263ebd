package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// maxExamples is how many differences a report shows.
const maxExamples = 10

// Report is the outcome of a comparison.
type Report struct {
	Job     job.Name `json:"job"`
	Version string   `json:"version"`
	// Equal says that rows and dead letters are what the log gives.
	Equal bool `json:"equal"`
	// Rows is how many served rows were compared; Skipped how many were not, because their records are partly below the
	// log start (only with FromLogStart).
	Rows    int64 `json:"rows"`
	Skipped int64 `json:"skipped"`
	// ComparedAfter is the time key that compared rows are after, with FromLogStart.
	ComparedAfter string `json:"compared_after,omitempty"`
	// Records is how many records were read from the log, dead letters included.
	Records     int64 `json:"records"`
	DeadLetters int64 `json:"dead_letters"` // records that cannot be processed, as found in the log
	// Differences counts rows that are missing, extra or of other values, and dead letters that are stored and should
	// not be, or the other way round.
	Differences int64       `json:"differences"`
	Examples    []Example   `json:"examples"` // at most ten
	Seconds     float64     `json:"seconds"`
	Partitions  []Partition `json:"partitions"`
}

// Partition is what was read of one partition.
type Partition struct {
	Topic     string      `json:"topic"`
	Partition int32       `json:"partition"`
	From      int64       `json:"from"`
	To        int64       `json:"to"`
	Gaps      []job.Range `json:"gaps,omitempty"` // accepted ones within it
}

// Example is one difference. Values are texts by column; nil is NULL. Served or Expected is nil when there is no such row.
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
