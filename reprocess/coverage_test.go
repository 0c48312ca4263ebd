package reprocess

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kappactl/kappactl/internal/job"
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

func TestTheRefusalHasOffsetsCuresAndTheToken(t *testing.T) {
	losses := []Loss{{Live: Start{part("a", 1, 0), 10}, Candidate: 30, Kind: LossLater}}
	err := coverageRefusal(job.Ref{Job: "j", Number: 1}, job.Ref{Job: "j", Number: 2}, losses, "")
	var r *job.Refusal
	if !errors.As(err, &r) || r.Code != job.ExitGap || !strings.HasSuffix(r.Next, "="+Token(losses)) {
		t.Fatalf("%+v", err)
	}
	for _, word := range []string{"a/0: v1 begins at offset 10, v2 at 30", "serve.keep", "archive", "accept"} {
		if !strings.Contains(r.Cause, word) {
			t.Errorf("no %q in %s", word, r.Cause)
		}
	}
	if err := coverageRefusal(job.Ref{}, job.Ref{}, losses, Token(losses)); err != nil {
		t.Error(err)
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

func TestStartTimesAreReadAsTheJobFileWritesThem(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-01-31T00:00:00Z":      time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
		"2026-01-31T00:00:00+05:30": time.Date(2026, 1, 30, 18, 30, 0, 0, time.UTC),
		"-30d":                      now.Add(-30 * 24 * time.Hour),
		"-1d12h":                    now.Add(-36 * time.Hour),
		"-90m":                      now.Add(-90 * time.Minute),
	} {
		if got, err := startTime(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "30d", "-30", "-xd", "-", ""} {
		if got, err := startTime(text, now); err == nil {
			t.Errorf("%q was read as %s", text, got)
		}
	}
}

func TestSegmentsAreCutSmallerWhenRecordsAreLarge(t *testing.T) {
	p := job.PartitionFacts{Start: 0, End: 1_000_000}
	for size, want := range map[int64]int64{
		0: 0, 50 << 20: 0, 1 << 30: 62500, 1 << 40: segmentFloor,
	} {
		if got := splitAt(p, size); got != want {
			t.Errorf("%d bytes: %d, want %d", size, got, want)
		}
	}
}
