package verify

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
)

func spanOf(from, to int64, gaps ...job.Range) *span {
	return &span{Partition: job.Partition{Topic: "t", TopicID: job.TopicID{1}}, Range: job.Range{From: from, To: to}, gaps: gaps}
}

func TestAcceptedGapsAreSteppedOver(t *testing.T) {
	s := spanOf(10, 100, job.Range{From: 0, To: 20}, job.Range{From: 20, To: 30}, job.Range{From: 90, To: 120})
	s.begin(s.From)
	if s.start != 30 || s.covers(29) || !s.covers(30) || !s.covers(89) || s.covers(90) || s.covers(100) {
		t.Errorf("start %d", s.start)
	}
	s.advance(90)
	if !s.done() {
		t.Errorf("next is %d: the rest is a gap", s.next)
	}
}

func TestWhatTheLogNoLongerHoldsIsALoss(t *testing.T) {
	facts := func(start, end int64, id byte) []job.TopicFacts {
		return []job.TopicFacts{{Name: "t", ID: job.TopicID{id}, Partitions: []job.PartitionFacts{{Start: start, End: end}}}}
	}
	for name, c := range map[string]struct {
		span   *span
		topics []job.TopicFacts
		want   string
		whole  bool
	}{
		"all there":                  {span: spanOf(10, 100), topics: facts(10, 100, 1)},
		"log start moved":            {span: spanOf(10, 100), topics: facts(40, 100, 1), want: "t/0 [10,40) is gone, the log starts at 40"},
		"log start behind all of it": {span: spanOf(10, 100), topics: facts(200, 200, 1), want: "t/0 [10,100) is gone, the log starts at 200"},
		"log start inside a gap":     {span: spanOf(10, 100, job.Range{From: 5, To: 50}), topics: facts(40, 100, 1)},
		"log start behind a gap":     {span: spanOf(10, 100, job.Range{From: 5, To: 50}), topics: facts(60, 100, 1), want: "t/0 [50,60) is gone, the log starts at 60"},
		"nothing was read":           {span: spanOf(10, 10), topics: facts(40, 100, 1)},
		"another incarnation":        {span: spanOf(10, 100), topics: facts(0, 100, 2), want: `t/0 [10,100): topic "t" was deleted and recreated`, whole: true},
		"topic gone":                 {span: spanOf(10, 100), want: `t/0 [10,100): topic "t" no longer exists`, whole: true},
		"log cut off":                {span: spanOf(10, 100), topics: facts(0, 50, 1), want: "t/0 [10,100): the log ends at 50", whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			lost := losses([]*span{c.span}, c.topics)
			switch {
			case c.want == "" && len(lost) > 0:
				t.Errorf("lost: %s", lost[0].why)
			case c.want != "" && (len(lost) != 1 || lost[0].why != c.want || lost[0].whole != c.whole):
				t.Errorf("lost %+v, want %q", lost, c.want)
			}
		})
	}
}

// TestWithoutATimeKeyNothingIsAdvisedThatRefusesAgain: --from-log-start and GROUP BY are cures of rollups alone.
func TestWithoutATimeKeyNothingIsAdvisedThatRefusesAgain(t *testing.T) {
	ref := job.Ref{Job: "hits", Number: 1}
	cut := []loss{{span: spanOf(0, 9), why: "t/0 [0,3) is gone", start: 3}}
	whole := []loss{{span: spanOf(0, 9), why: "topic gone", whole: true}}
	for name, c := range map[string]struct {
		err     error
		has     string
		lacking string
	}{
		"a time key":                 {refuse(ref, cut, true), "kappactl verify hits v1 --from-log-start", "deploy"},
		"no time key":                {refuse(ref, cut, false), "deploy a changed file", "--from-log-start"},
		"all is gone":                {refuse(ref, whole, false), "deploy the job again", "--from-log-start"},
		"a rollup":                   {untimed(job.Rollup), "group by a time", "keep the log"},
		"appended rows":              {untimed(job.Rows), "deploy a changed file", "group by"},
		"the latest row of each key": {untimed(job.Latest), "deploy a changed file", "group by"},
	} {
		var r *job.Refusal
		if !errors.As(c.err, &r) || r.Code != job.ExitGap || !strings.Contains(r.Next, c.has) || strings.Contains(r.Next, c.lacking) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestDeadLettersAreComparedByOffset(t *testing.T) {
	s := spanOf(0, 100)
	s.begin(50)
	s.stored, s.rejected = []int64{10, 60, 70}, []int64{60, 80}
	var got []string
	for _, e := range deadLetterDifferences([]*span{s}) {
		got = append(got, e.String())
	}
	want := []string{
		"record=t/0:80: served no row, expected dead_letter=yes",
		"record=t/0:70: served dead_letter=yes, expected no row",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
