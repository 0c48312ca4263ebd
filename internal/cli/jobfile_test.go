package cli

import (
	"errors"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

// The version's own file has its values already: variables for it would be ignored.
func TestVariablesOfARetryBelongToAFile(t *testing.T) {
	for _, args := range [][]string{{"--set", "A=1"}, {"--vars", "x.env"}} {
		o, _, err := parsed(t, newDeadletterRetry, append([]string{"orders"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = o.jobFile(t.Context(), nil, job.Ref{Job: "orders", Number: 1})
		var refusal *job.Refusal
		if !errors.As(err, &refusal) || refusal.Code != job.ExitUsage || refusal.Next == "" {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestTheNextCommandIsQuotedForAShell(t *testing.T) {
	f := jobFile{path: "my job.yaml", vars: "a.env", set: assignments{{"A", "it's"}, {"B", "x-1"}, {"C", ""}}}
	if got, want := f.String(), `'my job.yaml' --vars a.env --set 'A=it'\''s' --set B=x-1 --set C=`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
