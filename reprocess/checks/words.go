package checks

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/reason"
)

// Answer returns the result as a reason, without examples.
func (r Result) Answer() reason.Reason {
	return reason.CheckAnswer(r.Name, string(r.Outcome), r.Detail, nil)
}

// Answers returns the results as reasons, without examples.
func Answers(results []Result) []reason.Reason {
	out := make([]reason.Reason, len(results))
	for i, r := range results {
		out[i] = r.Answer()
	}
	return out
}

// Report returns the results as reasons, with the examples of diff checks.
func Report(results []Result) []reason.Reason {
	out := make([]reason.Reason, len(results))
	for i, r := range results {
		var examples []string
		if r.Diff != nil {
			for _, e := range r.Diff.Examples {
				examples = append(examples, e.Words(r.Diff.A, r.Diff.B))
			}
		}
		out[i] = reason.CheckAnswer(r.Name, string(r.Outcome), r.Detail, examples)
	}
	return out
}

// Words formats an example on one line: the key, and its values in both versions, named a and b.
func (e Example) Words(a, b string) string {
	switch e.Kind {
	case OnlyA:
		return fmt.Sprintf("%s only in %s: %s", e.Key, a, e.A)
	case OnlyB:
		return fmt.Sprintf("%s only in %s: %s", e.Key, b, e.B)
	case Changed:
	}
	var was, is map[string]json.RawMessage
	if json.Unmarshal(e.A, &was) != nil || json.Unmarshal(e.B, &is) != nil {
		return fmt.Sprintf("%s %s: %s, %s: %s", e.Key, a, e.A, b, e.B)
	}
	values := make([]string, len(e.Columns))
	for i, name := range e.Columns {
		values[i] = fmt.Sprintf("%s %s → %s", name, was[name], is[name])
	}
	return fmt.Sprintf("%s %s", e.Key, strings.Join(values, ", "))
}
