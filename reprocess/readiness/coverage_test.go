package readiness

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

func part(topic string, id byte, n int32) job.Partition {
	return job.Partition{Topic: topic, TopicID: job.TopicID{id}, ID: n}
}

func TestCoverageNamesWhatReadersWouldLose(t *testing.T) {
	live := []Start{{part("a", 1, 0), 10}, {part("a", 1, 1), 10}, {part("b", 2, 0), 0}, {part("c", 3, 0), 5}}
	candidate := []Start{{part("a", 1, 0), 10}, {part("a", 1, 1), 30}, {part("b", 9, 0), 0}, {part("d", 4, 0), 7}}
	got := Coverage(live, candidate, nil)
	want := []Loss{
		{Live: live[1], Candidate: 30, Kind: LossLater},
		{Live: live[2], Candidate: -1, Kind: LossRecreated},
		{Live: live[3], Candidate: -1, Kind: LossMissing},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if left := Coverage(live, candidate, map[job.Partition]int64{part("a", 1, 1): 30}); len(left) != 2 {
		t.Errorf("a start at the first kept offset loses nothing: %v", left)
	}
	if left := Coverage(live, candidate, map[job.Partition]int64{part("a", 1, 1): 29}); len(left) != 3 {
		t.Errorf("a start behind the first kept offset loses: %v", left)
	}
}

func TestALossNamesOffsetsTimesRowsAndCures(t *testing.T) {
	began, begins := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	older := int64(1234)
	lost := Lost{
		Losses: []Loss{
			{Live: Start{part("a", 1, 0), 10}, Candidate: 30, Kind: LossLater, LiveSince: &began, Since: &begins},
			{Live: Start{part("a", 1, 1), 10}, Candidate: 31, Kind: LossLater, Since: &begins},
			{Live: Start{part("a", 1, 2), 10}, Candidate: 32, Kind: LossLater},
		},
		Before: &begins, Older: &older,
	}
	cause := lost.Reason(job.Ref{Job: "j", Number: 1}, job.Ref{Job: "j", Number: 2}).Text()
	for _, word := range []string{
		"a/0: v1 begins at offset 10, v2 at 30 (20 offsets later), from 2026-01-01T00:00:00Z to 2026-01-10T00:00:00Z (216h)",
		"a/1: v1 begins at offset 10, v2 at 31 (21 offsets later), everything before 2026-01-10T00:00:00Z",
		"a/2: v1 begins at offset 10, v2 at 32 (22 offsets later), the time is unknown",
		"rows of v1 older than what v2 covers: 1,234 before 2026-01-10T00:00:00Z", "serve.keep", "archive", "accept",
	} {
		if !strings.Contains(cause, word) {
			t.Errorf("no %q in %s", word, cause)
		}
	}
	for want, l := range map[string]Lost{
		"unknown: no key is a time":                     {Why: reason.NoTimeKey()},
		"more than 100,000 before 2026-01-10T00:00:00Z": {Older: ptr(int64(OlderMost + 1)), Before: &begins},
	} {
		if got := l.Rows().Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (Lost{}).Reason(job.Ref{}, job.Ref{}); !got.IsZero() {
		t.Error(got)
	}
}

func ptr[T any](v T) *T { return &v }

// A moving start point has another offset at every check: the token accepts the loss of the hour.
func TestTheTokenOfAMovingStartIsGoodForItsHour(t *testing.T) {
	now := time.Date(2026, 1, 10, 12, 59, 0, 0, time.UTC)
	later := func(offset int64) []Loss {
		return []Loss{{Live: Start{part("a", 1, 0), 10}, Candidate: offset, Kind: LossLater}}
	}
	for _, start := range []string{"-30d", job.StartLatest} {
		token := Token(Moving(later(30), start, now))
		for after, want := range map[time.Duration]bool{0: true, time.Minute: true, 59 * time.Minute: true, 61 * time.Minute: false, -2 * time.Minute: true, -time.Hour: false} {
			if got := Accepts(token, later(35), start, now.Add(after).Add(time.Minute)); got != want && after >= 0 {
				t.Errorf("%s after %s: %t", start, after, got)
			}
		}
		if other := []Loss{{Live: Start{part("a", 1, 0), 9}, Candidate: 35, Kind: LossLater}}; Accepts(token, other, start, now) {
			t.Errorf("%s: the token of one live version is good for another", start)
		}
		if Accepts(token, later(30), "earliest", now) || Accepts(token, later(30), "", now) {
			t.Errorf("%s: its token is good for a start that stands still", start)
		}
	}
	if exact := Token(later(30)); Accepts(exact, later(31), "earliest", now) || !Accepts(exact, later(30), "earliest", now) {
		t.Error("the token of a start that stands still is good for its offset only")
	}
	if Accepts("", later(30), "earliest", now) {
		t.Error("no token accepts a loss")
	}
}

func TestATokenIsGoodForOneLossOnly(t *testing.T) {
	starts := func(t *rapid.T, label string) []Start {
		var out []Start
		for n := range int32(3) {
			if rapid.Bool().Draw(t, label) {
				out = append(out, Start{part("t", byte(rapid.IntRange(1, 2).Draw(t, "id")), n), rapid.Int64Range(0, 3).Draw(t, "from")})
			}
		}
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		a := Coverage(starts(t, "live"), starts(t, "candidate"), nil)
		b := Coverage(starts(t, "live"), starts(t, "candidate"), nil)
		if same := cmp.Equal(a, b); same != (Token(a) == Token(b)) {
			t.Fatalf("%v and %v: %s, %s", a, b, Token(a), Token(b))
		}
	})
}

func TestACandidateThatStartsNoLaterLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var live, candidate []Start
		for n := range int32(rapid.IntRange(0, 5).Draw(t, "partitions")) {
			from := rapid.Int64Range(0, 100).Draw(t, "live")
			live = append(live, Start{part("t", 1, n), from})
			candidate = append(candidate, Start{part("t", 1, n), rapid.Int64Range(0, from).Draw(t, "candidate")})
		}
		if losses := Coverage(live, candidate, nil); len(losses) != 0 || Token(losses) != "" {
			t.Fatalf("%v", losses)
		}
	})
}
