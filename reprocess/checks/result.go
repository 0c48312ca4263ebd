package checks

import (
	"encoding/json"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// Outcome is the outcome of a check.
type Outcome string

// The outcomes of a check. Before the flip only Pass allows it. After it only two consecutive Fails undo it.
const (
	Pass     Outcome = "pass"
	Fail     Outcome = "fail"
	NoAnswer Outcome = "no answer"
)

// Result is the answer of one check in one run.
type Result struct {
	Name    string
	Outcome Outcome
	Detail  reason.Reason // why, or what was found
	Seconds float64
	Diff    *Diff // of a diff check; A is the version compared with the candidate

	missing bool // the answer is that of the missing counterpart
}

// resultJSON is a Result in the detail of an event. It is documented; fields are only added.
type resultJSON struct {
	Name    string      `json:"name"`
	Outcome Outcome     `json:"outcome"`
	Detail  string      `json:"detail,omitempty"`
	Code    reason.Code `json:"detail_code,omitempty"`
	Args    reason.Args `json:"detail_args,omitempty"`
	Seconds float64     `json:"seconds"`
	Diff    *Diff       `json:"diff,omitempty"`
}

// MarshalJSON adds the text of the detail to its code and arguments.
func (r Result) MarshalJSON() ([]byte, error) {
	return json.Marshal(resultJSON{r.Name, r.Outcome, r.Detail.Text(), r.Detail.Code, r.Detail.Args, r.Seconds, r.Diff})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Result) UnmarshalJSON(text []byte) error {
	var in resultJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("decode the result of a check: %w", err)
	}
	detail := reason.Reason{Code: in.Code, Args: in.Args}
	*r = Result{Name: in.Name, Outcome: in.Outcome, Detail: detail, Seconds: in.Seconds, Diff: in.Diff}
	return nil
}

// Diff is the key-by-key comparison of two versions at the same offsets. Its JSON is documented; fields are only added.
type Diff struct {
	Job  job.Name `json:"job"`
	A    string   `json:"a"`
	B    string   `json:"b"`
	Keys []string `json:"keys"`
	// compared columns: those of both versions with the same type, not ignored
	Columns  []string  `json:"columns"`
	Where    string    `json:"where,omitempty"`
	OnlyA    int64     `json:"only_a"` // keys
	OnlyB    int64     `json:"only_b"`
	Changed  int64     `json:"changed"` // keys of both with other values
	Same     int64     `json:"same"`
	Examples []Example `json:"examples"`
	// up to which both had read, by topic/partition; none for an adopted table
	Offsets map[string]int64 `json:"offsets"`
}

// DiffKind tells how a key differs.
type DiffKind string

// The kinds of difference.
const (
	OnlyA   DiffKind = "only_a"
	OnlyB   DiffKind = "only_b"
	Changed DiffKind = "changed"
)

// Example is one key that differs. A or B is null if that version lacks the key. Columns are those with other values.
type Example struct {
	Kind    DiffKind        `json:"kind"`
	Key     json.RawMessage `json:"key"`
	Columns []string        `json:"columns"`
	A       json.RawMessage `json:"a"`
	B       json.RawMessage `json:"b"`
}

// All returns the number of compared keys.
func (d Diff) All() int64 { return d.OnlyA + d.OnlyB + d.Changed + d.Same }

// Share returns the share of all keys that differ, 0 to 1.
func (d Diff) Share() float64 { return share(d.OnlyA+d.OnlyB+d.Changed, d.All()) }

func share(part, of int64) float64 {
	if part == 0 {
		return 0
	}
	return float64(part) / float64(of)
}
