package follow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

func ptr[T any](v T) *T { return &v }

func noon() time.Time { return time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC) }

// version is a version that has 3 records left to read.
func version(number string, phase job.Phase) Version {
	return Version{Job: "pageviews", State: job.RollingOut, Version: status.Version{
		Version: number, Phase: phase, Verdict: job.Ready, Records: 40, LagRecords: ptr(int64(3)), RecordsPerSecond: ptr(900_000.0), ETASeconds: ptr(2.0),
	}}
}

// looks lets a follower see each of the versions, a second apart, and returns what it printed.
func looks(t *testing.T, c Config, n int, at func(second int) []Version) string {
	t.Helper()
	var out bytes.Buffer
	c.Out = &out
	f := New(c)
	for second := range n {
		f.See(noon().Add(time.Duration(second)*time.Second), at(second), nil)
	}
	if f.Err() != nil {
		t.Error(f.Err())
	}
	return out.String()
}

func TestTextIsPrintedAtChangesAndNowAndThen(t *testing.T) {
	out := looks(t, Config{Every: Slow, Stamp: true}, 30, func(second int) []Version {
		v := version("v2", job.Replaying)
		v.Verdict, v.Reason, v.Records = job.ReplayingRanges, "3 records left", int64(100*(second/15))
		if second >= 25 {
			v.Phase, v.Verdict, v.Reason, v.RecordsPerSecond, v.ETASeconds = job.CatchingUp, job.Lagging, "3 records,\n6s behind", nil, nil
		}
		if second == 29 {
			v.Phase, v.Verdict = job.Verified, job.Ready
		}
		return []Version{v, version("v1", job.Live), version("v0", job.Retired)}
	})
	want := `2026-03-14T12:00:00Z pageviews v2 replaying  0 records read, 3 to go  900k/s  ETA 2s
2026-03-14T12:00:00Z pageviews v1 live
2026-03-14T12:00:20Z pageviews v2 replaying  100 records read, 3 to go  900k/s  ETA 2s
2026-03-14T12:00:25Z pageviews v2 catching_up  3 records behind  3 records, 6s behind
2026-03-14T12:00:29Z pageviews v2 verified
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
}

func TestTextOfAnEndedAndOfAPausedVersion(t *testing.T) {
	out := looks(t, Config{Every: Slow}, 3, func(second int) []Version {
		v := version("v2", []job.Phase{job.Verified, job.Verified, job.Aborted}[second])
		v.Paused = second == 1
		if v.Phase.Ended() {
			v.Error = "aborted by ana"
		}
		return []Version{v}
	})
	if diff := cmp.Diff("pageviews v2 verified\npageviews v2 verified (paused)\npageviews v2 aborted: aborted by ana\n", out); diff != "" {
		t.Error(diff)
	}
}

func TestVersionsShareTheTimeBetweenLinesOfProgress(t *testing.T) {
	printed := map[string]int{}
	out := looks(t, Config{Every: Slow}, 101, func(second int) []Version {
		var all []Version
		for i := range 5 {
			v := version("v2", job.CatchingUp)
			v.Job, v.LagRecords = job.Name(fmt.Sprintf("job%d", i)), ptr(int64(second+1))
			l := version("v1", job.Live)
			l.Job = v.Job
			all = append(all, v, l)
		}
		return all
	})
	for _, line := range strings.Split(out, "\n") {
		name, _, _ := strings.Cut(line, " catching_up")
		printed[name]++
	}
	for i := range 5 { // one when it is first seen, and two of the ten of a hundred seconds
		if n := printed[fmt.Sprintf("job%d v2", i)]; n != 3 {
			t.Errorf("job%d: %d lines", i, n)
		}
	}
}

func TestAWarningIsPrintedWhenItComesUpAndNotWhileItCountsOn(t *testing.T) {
	out := looks(t, Config{Every: Slow, Stamp: true}, 70, func(second int) []Version {
		v, j := version("v2", job.Replaying), Version{Job: "pageviews"}
		if second < 3 || second == 4 || second >= 68 {
			v.WarningReasons = []reason.Reason{reason.ReplaySlowed("a1", fmt.Sprintf("a replica is %ds behind (over 10s)", 40+second))}
			j.WarningReasons = []reason.Reason{reason.OldTransaction(411, fmt.Sprintf("pid 411, in a transaction for 3h%dm", second))}
		}
		return []Version{v, j}
	})
	var got []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "warning") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	const held = ": rows that agents have replaced since then cannot be removed, and a flip may wait for it"
	want := []string{
		"2026-03-14T12:00:00Z pageviews v2 warning: the replay is slowed down on agent a1: a replica is 40s behind (over 10s)",
		"2026-03-14T12:00:00Z pageviews warning: pid 411, in a transaction for 3h0m" + held,
		"2026-03-14T12:01:08Z pageviews v2 warning: the replay is slowed down on agent a1: a replica is 108s behind (over 10s)",
		"2026-03-14T12:01:08Z pageviews warning: pid 411, in a transaction for 3h68m" + held,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// kinds are those of a stream, with the phase or verdict.
func kinds(t *testing.T, out string) []string {
	t.Helper()
	var got []string
	for line := range strings.Lines(out) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for _, field := range []string{"at", "job", "version"} {
			if _, found := o[field]; !found {
				t.Errorf("no %s: %s", field, line)
			}
		}
		kind := fmt.Sprint(o["kind"])
		if is, found := o[kind]; found {
			kind += fmt.Sprint(" ", is)
		}
		got = append(got, kind)
	}
	return got
}

func TestObjectsAreThoseOfOneSchemaForCommandsAndWatch(t *testing.T) {
	for _, followed := range []bool{true, false} {
		out := looks(t, Config{JSON: true, Every: time.Second}, 4, func(second int) []Version {
			v := version("v2", job.CatchingUp)
			v.Followed, v.LagRecords = followed, ptr(int64(3-second))
			if second == 2 {
				v.Verdict, v.WarningReasons = job.Lagging, []reason.Reason{reason.ReplaySlowed("a1", "x")}
			}
			return []Version{v}
		})
		want := []string{
			"phase catching_up", "verdict ready", "progress", "progress", "verdict lagging", "warning", "progress", "verdict ready", "progress",
		}
		if diff := cmp.Diff(want, kinds(t, out)); diff != "" {
			t.Errorf("followed %t: %s\n%s", followed, diff, out)
		}
	}
}

func TestAPhaseThatWasReadBeforeItsEventsIsNotGoneBackTo(t *testing.T) {
	var out bytes.Buffer
	f := New(Config{Out: &out, JSON: true, Every: time.Second})
	v := version("v2", job.Replaying)
	f.Start(noon(), v, 7, false, nil)
	var events []ledger.PastEvent
	for i, to := range []job.Phase{job.Building, job.CatchingUp} {
		events = append(events, ledger.PastEvent{
			ID: int64(i + 1), Kind: ledger.EventPhase, At: noon(), Job: v.Job, Version: ptr("v2"), Detail: json.RawMessage(`{"to": "` + to + `"}`),
		})
	}
	v.Phase, v.PhaseSince = job.Building, noon().Add(-1)
	f.See(noon(), []Version{v}, events)
	f.See(noon(), []Version{v}, events) // the same events once more
	v.Phase, v.PhaseSince = job.Live, noon().Add(1)
	f.See(noon(), []Version{v}, nil)
	want := []string{"start", "phase building", "phase catching_up", "progress", "phase live"}
	if diff := cmp.Diff(want, kinds(t, out.String())); diff != "" {
		t.Errorf("%s\n%s", diff, out.String())
	}
}
