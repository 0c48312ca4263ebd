package cli

import (
	"testing"

	"github.com/kappactl/kappactl/reprocess/ledger"
)

func ptr[T any](v T) *T { return &v }

func TestComingBackNamesWhatTheDeploymentGoesFor(t *testing.T) {
	for _, c := range []struct {
		goal    goal
		promote string
		want    string
	}{
		{"", "auto", "live"}, {"", "manual", "verified"}, {"staged", "manual", "verified"}, {"caught_up", "auto", "caught_up"},
	} {
		f := follower{goal: c.goal}
		got := f.comeBack(ledger.Deployment{Job: "a", Number: 3, Promote: c.promote})
		if want := "kappactl wait a v3 --for " + c.want + "   # the deployment goes on"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
