package job_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kappactl/kappactl/internal/job"
)

func TestAPathHasOneSpelling(t *testing.T) {
	for written, want := range map[string]string{
		`path: $.payload.amount`:           "$.payload.amount",
		`path: $["payload"]['amount']`:     "$.payload.amount",
		`path: $ .payload [ 'amount' ]`:    "$.payload.amount",
		`path: $.items[0].x`:               "$.items[0].x",
		`path: $['unit price'].größe`:      "$['unit price'].größe",
		`path: $['it\'s \\ "so"']["a\tb"]`: `$['it\'s \\ "so"']['a\u0009b']`,
		`path: $['@timestamp']`:            "$['@timestamp']",
		`path: $.http['status.code']['']`:  "$.http['status.code']['']",
		`field: _id`:                       "$._id",
		`field: "@timestamp"`:              "$['@timestamp']",
		`field: a.b[0]`:                    "$['a.b[0]']",
		`field: n`:                         "",
		`path: $["n"]`:                     "",
	} {
		text := replace(t, plain, "{url: text, n: int}", "\n    url: text\n    n:\n      type: int\n      "+written)
		if got := parse(t, text).Source.Columns[1].Path; got != want {
			t.Errorf("%s: %s, want %s", written, got, want)
		}
	}
}

func TestPathsSurviveTheirText(t *testing.T) {
	step := rapid.Custom(func(t *rapid.T) job.Step {
		if rapid.Bool().Draw(t, "name") {
			return job.Step{Name: rapid.StringN(0, 10, -1).Draw(t, "its text"), Index: -1}
		}
		return job.Step{Index: rapid.IntRange(0, 9999).Draw(t, "index")}
	})
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(step, 1, 8).Draw(t, "steps")
		got, err := job.Column{Name: "c", Path: job.PathText(want)}.Steps()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: %s", job.PathText(want), diff)
		}
	})
}
