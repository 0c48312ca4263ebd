package reason_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// example is a reason with its text.
type example struct {
	reason reason.Reason
	text   string
}

func examples() []example {
	return slices.Concat(generalExamples(), verdictExamples(), troubleExamples(), faultExamples(), coverageExamples(), warningExamples(),
		deploymentExamples(), checkExamples(), eventExamples(), archiveExamples(), batchExamples(), experimentExamples(), judgeExamples(), scheduleExamples(),
		actExamples(), refusalExamples(), stageRefusalExamples(), tryExamples())
}

func ref() job.Ref { return job.Ref{Job: "orders", Number: 3} }

func partition() job.Partition { return job.Partition{Topic: "orders", ID: 2} }

func noon() time.Time { return time.Date(2026, 1, 31, 13, 0, 0, 0, time.FixedZone("CET", 3600)) }

func generalExamples() []example {
	return []example{
		{reason.Refused("view v is in use"), "view v is in use"},
		{reason.TriedAgain("the disk is full"), "the disk is full; it is tried again"},
		{reason.Error(errors.New("connection reset")), "connection reset"},
		{reason.NoWorker().More(1), "no worker reads it (and 1 partition more)"},
		{reason.NoWorker().More(1200), "no worker reads it (and 1,200 partitions more)"},
	}
}

func TestEveryReasonHasTheTextOfItsExample(t *testing.T) {
	for _, e := range examples() {
		if got := e.reason.Text(); got != e.text {
			t.Errorf("%s:\n got %s\nwant %s", e.reason.Code, got, e.text)
		}
	}
}

func TestTextSurvivesARoundTripThroughJSON(t *testing.T) {
	for _, e := range examples() {
		stored, err := json.Marshal(e.reason)
		if err != nil {
			t.Fatal(err)
		}
		var read reason.Reason
		if err := json.Unmarshal(stored, &read); err != nil {
			t.Fatal(err)
		}
		if got := read.Text(); got != e.text {
			t.Errorf("%s:\n got %s\nwant %s", stored, got, e.text)
		}
		if !read.Equal(e.reason) {
			t.Errorf("%s is not equal to what it was written from", stored)
		}
	}
}

func TestEveryCodeHasAnExample(t *testing.T) {
	shown := map[reason.Code]bool{}
	for _, e := range examples() {
		shown[e.reason.Code] = true
	}
	for _, code := range reason.Codes() {
		if !shown[code] {
			t.Errorf("code %q has no example", code)
		}
	}
	if len(shown) != len(reason.Codes()) {
		t.Errorf("%d codes are shown, %d have a text", len(shown), len(reason.Codes()))
	}
}

func TestAReasonOfANewerReleaseShowsItsArguments(t *testing.T) {
	r := reason.Reason{Code: "eclipse", Args: reason.Args{"moon": "full", "hours": 3}}
	if got := r.Text(); got != "eclipse (hours=3, moon=full)" {
		t.Errorf("got %q", got)
	}
	r = reason.Reason{Code: reason.CodeBehind} // with other arguments than this release knows
	if got := r.Text(); got != "behind" {
		t.Errorf("got %q", got)
	}
}

func TestNoReasonHasNoText(t *testing.T) {
	var none reason.Reason
	stored, err := json.Marshal(none)
	if err != nil || string(stored) != "{}" || !none.IsZero() || none.Text() != "" {
		t.Errorf("%s, %v, %q", stored, err, none.Text())
	}
}

func TestIsFindsNestedCodes(t *testing.T) {
	r := reason.CannotRollBack(reason.FailedTwice("rows", reason.NoKeys()), "v2", reason.Paused())
	stored, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var read reason.Reason
	if err := json.Unmarshal(stored, &read); err != nil {
		t.Fatal(err)
	}
	for _, r := range []reason.Reason{r, read} {
		if !r.Is(reason.CodeFailedTwice) || !r.Is(reason.CodeGap, reason.CodePaused) || r.Is(reason.CodeGap) {
			t.Errorf("%v: nested codes are not found", r)
		}
	}
}

func TestTheKeyOfAReasonStaysWhileItsNumbersChange(t *testing.T) {
	now := reason.ReplaySlowed("a1", "replication lag 2s").Key()
	if later := reason.ReplaySlowed("a1", "replication lag 3s").Key(); later != now {
		t.Errorf("%q, then %q", now, later)
	}
	for _, other := range []reason.Reason{reason.ReplaySlowed("a2", "replication lag 2s"), reason.BrokerThrottled("a1", 0.5)} {
		if other.Key() == now {
			t.Errorf("%q is the key of two reasons", now)
		}
	}
}

func TestTheKeyOfARefusalIsThatOfItsCause(t *testing.T) {
	gaveUp := func(cause reason.Reason) string {
		return reason.GaveUp("rollback", "orders/v2", time.Minute, cause).Key()
	}
	held := gaveUp(reason.OlderSnapshots([]string{"pid 7"}, true))
	if later := gaveUp(reason.OlderSnapshots([]string{"pid 8", "pid 9"}, true)); later != held {
		t.Errorf("%q, then %q", held, later)
	}
	if other := gaveUp(reason.BarrierEnded()); other == held {
		t.Errorf("%q is the key of two causes", held)
	}
	stored, err := json.Marshal(reason.GaveUp("rollback", "orders/v2", time.Minute, reason.BarrierEnded()))
	var read reason.Reason
	if err != nil || json.Unmarshal(stored, &read) != nil || read.Key() != gaveUp(reason.BarrierEnded()) {
		t.Errorf("%s, %v: has the key %q after it was stored", stored, err, read.Key())
	}
}

func TestCodesAreInOneForm(t *testing.T) {
	for _, code := range reason.Codes() {
		if strings.Trim(string(code), "abcdefghijklmnopqrstuvwxyz_") != "" || strings.Contains(string(code), " ") {
			t.Errorf("code %q: want lower-case letters and underscores", code)
		}
	}
}
