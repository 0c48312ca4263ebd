package reprocess_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// Lag time goes by when offsets were seen, not by what producers stamp: an old newest record is no lag, one from the future is no
// negative lag and one warning, and no stamp at all is null.
func TestOddStampsMakeNoLagAndOneWarning(t *testing.T) {
	w := firstLive(t, 100, 50)
	for _, c := range []struct{ what, stamp, warning string }{
		{"three hours old", "clock_timestamp() - interval '3 hours'", ""},
		{"a little ahead", "clock_timestamp() + interval '20 seconds'", ""},
		{"tomorrow", "clock_timestamp() + interval '1 day'", "which is in the future: a producer's clock or its unit of time is wrong; so do records of 1 more partition"},
		{"none", "NULL", ""},
	} {
		w.sql(`UPDATE kappactl.position SET record_time = ` + c.stamp)
		w.sql(`DELETE FROM kappactl.observation`)
		w.await("samples of stamps: "+c.what, func() bool {
			v := w.version(1)
			return len(v.Partitions) == 2 && (c.stamp == "NULL") == (v.Partitions[0].RecordTime == nil) && (c.warning == "") == (len(v.Warnings) == 0)
		})
		v := w.version(1)
		if len(v.Warnings) > 1 || c.warning != "" && !strings.Contains(v.Warnings[0], c.warning) {
			t.Errorf("%s: warnings %q", c.what, v.Warnings)
		}
		for _, p := range v.Partitions {
			if *p.LagRecords != 0 || *p.LagSeconds != 0 || p.Verdict != job.Ready {
				t.Errorf("%s: %+v", c.what, p)
			}
		}
		if text, err := json.Marshal(v.Partitions[0]); err != nil || (c.stamp == "NULL") != strings.Contains(string(text), `"record_time":null`) {
			t.Errorf("%s: %s (%v)", c.what, text, err)
		}
	}
}

// A topic that is deleted is missing on its own: it has no lag, neither 0 nor a growing one, the other topic is still shown, a version
// that does not read it lists the other only, and retiring the one that did clears it.
func TestADeletedTopicIsMissingOnItsOwnUntilItsVersionIsRetired(t *testing.T) {
	w := newWorld(t, 100, 50)
	w.brokers.set(func(b *brokers) { b.second = 1 })
	w.run(1, nil)
	both := func(s *plan.Staging) { s.Spec.Source.Topics = []string{"events", "other"} }
	w.finish(w.stage("aaa", both).Deployment, "live", job.ExitOK)
	w.brokers.set(func(b *brokers) { b.gone = true })
	missing := func() {
		t.Helper()
		w.await("other is missing", func() bool {
			v := w.version(1)
			return len(v.Partitions) == 2 && v.Partitions[1].Verdict == job.Unknown && v.Partitions[0].Verdict == job.Ready
		})
		v := w.version(1)
		there, gone := v.Partitions[0], v.Partitions[1]
		if there.Topic != "events" || *there.LagRecords != 0 || gone.Topic != "other" || gone.LagRecords != nil || gone.LagSeconds != nil || gone.End != nil || v.LagRecords != nil {
			t.Errorf("%+v", v)
		}
		has(t, gone.Reason, "other does not exist")
	}
	missing()
	w.brokers.produce(0, 20)
	d := w.finish(w.stage("bbb").Deployment, "live", job.ExitGap)
	_, token, _ := strings.Cut(d.Next, "--accept-shorter-history=")
	w.await("cleaning", func() bool { return w.version(2).EndedAt != nil })
	w.finish(w.stage("bbb", auto, func(s *plan.Staging) { s.AcceptShorterHistory = token }).Deployment, "live", job.ExitOK)
	if parts := w.version(3).Partitions; len(parts) != 1 || parts[0].Topic != "events" || w.shown() != 120 {
		t.Errorf("v3 lists %+v and shows %d", parts, w.shown())
	}
	missing()
	w.must(1, ledger.Retire, ledger.Args{Now: true})
	w.await("nothing of other is left", func() bool {
		v := w.version(1)
		return v.EndedAt != nil && len(v.Partitions) == 0 && w.version(3).Verdict == job.Ready && len(w.version(3).Warnings) == 0
	})
}
