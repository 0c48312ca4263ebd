package speedlayer

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/archivetest"
	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// keeps gives the job an archive, and the replay a source.
func keeps(dir string, source job.ReplaySource) rigOption {
	return func(s *job.Spec) {
		s.Archive, s.Replay.Source = &job.Archive{Location: "file://" + dir}, source
	}
}

// archived is a rig whose topic has 3,000 records: the archive has those below 2,000, the log those from 1,500 on. All of it is frozen.
func archived(t *testing.T, source job.ReplaySource) (r *rig, dir string, files, want []string) {
	t.Helper()
	dir = t.TempDir()
	r = newRig(t, kafkatest.Real(t), 1, sums, keeps(dir, source))
	r.produce(0, 0, 3000)
	kafkatest.AwaitStable(t, r.brokers, r.topic, 0, 3000)
	p := archivetest.Want(t, r.pool, r.brokers, r.topic, "file://"+dir)[0]
	files = archivetest.Fill(t, r.pool, r.brokers, p, 700, 2000)
	want = r.oracle(nil)
	inTx(t, r.pool, func(tx *pg.Tx) error { return Store{}.Freeze(t.Context(), tx, at(r.ref, r.layout), r.frozen(0)) })
	kafkatest.DeleteRecords(t, r.brokers, r.topic, 0, 1500)
	return r, dir, files, want
}

// A segment spans archive and log, and its attempt dies before its commit.
func TestAReplayOverArchiveAndLogEqualsTheOracleOverAllRecords(t *testing.T) {
	t.Parallel()
	r, _, _, want := archived(t, "")
	r.phase(job.Replaying)
	var killed atomic.Bool
	r.agent("a", func(e *Engine) {
		e.at = func(point string) {
			if point == faultpoint.SegmentStaged && killed.CompareAndSwap(false, true) {
				r.killBackends()
			}
		}
	})
	r.agent("a", nil)
	r.build()
	r.caughtUp()
	if diff := cmp.Diff(want, r.served()); diff != "" {
		t.Error(diff)
	}
	if got := lines(t, r.pool, `SELECT sum(records), sum(to_offset - from_offset) FROM kappactl.segment`); got[0] != "(3000,3000)" {
		t.Errorf("segments: %v", got)
	}
}

func TestWithoutTheArchiveRetentionsGapStopsTheReplay(t *testing.T) {
	t.Parallel()
	r, _, _, _ := archived(t, job.SourceLog)
	r.phase(job.Replaying)
	r.agent("a", nil)
	got := r.fault(0)
	if got.Kind != job.FaultGap || got.From != 0 || got.To != 1500 {
		t.Errorf("%+v", got)
	}
}

func TestAGapBetweenArchiveAndLogLosesOnlyWhatNeitherHolds(t *testing.T) {
	t.Parallel()
	r, _, _, _ := archived(t, job.SourceAuto)
	kafkatest.DeleteRecords(t, r.brokers, r.topic, 0, 2200)
	r.phase(job.Replaying)
	r.agent("a", nil)
	got := r.fault(0)
	if got.Kind != job.FaultGap || got.From != 2000 || got.To != 2200 {
		t.Fatalf("%+v", got)
	}
	inTx(t, r.pool, func(tx *pg.Tx) error {
		ok, err := Store{}.AcceptGap(t.Context(), tx, r.ref, r.topic, 0, job.Range{From: 2000, To: 2200}, "test")
		if !ok {
			t.Error("the gap is not accepted")
		}
		return err
	})
	r.build()
	if got := lines(t, r.pool, `SELECT sum(records) FROM kappactl.segment`); got[0] != "(2800)" {
		t.Errorf("records: %v", got)
	}
}

func TestADamagedArchiveFileStopsTheReplayAndIsNamed(t *testing.T) {
	t.Parallel()
	r, dir, files, want := archived(t, job.SourceAuto)
	path := filepath.Join(dir, files[1])
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:4], 0o600); err != nil {
		t.Fatal(err)
	}
	r.phase(job.Replaying)
	r.agent("a", nil)
	got := r.fault(0)
	if got.Kind != job.FaultArchive || got.From != 700 || got.To != 2000 || !strings.Contains(got.Detail, files[1]) {
		t.Fatalf("%+v", got)
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	inTx(t, r.pool, func(tx *pg.Tx) error {
		_, err := Store{}.Retry(t.Context(), tx, r.ref)
		return err
	})
	r.build()
	r.caughtUp()
	if diff := cmp.Diff(want, r.served()); diff != "" {
		t.Error(diff)
	}
}

func TestAReplayFromTheArchiveAloneAsksNoBroker(t *testing.T) {
	t.Parallel()
	r, _, _, want := archived(t, job.SourceArchive)
	exec(t, r.pool, `UPDATE kappactl.segment SET to_offset = 2000`, nil)
	exec(t, r.pool, `UPDATE kappactl.position SET frozen_end = 2000`, nil)
	r.phase(job.Replaying)
	stop := r.agent("a", func(e *Engine) { e.Kafka.Brokers = []string{"127.0.0.1:1"} })
	r.build()
	stop()
	r.agent("b", nil)
	r.caughtUp()
	if diff := cmp.Diff(want, r.served()); diff != "" {
		t.Error(diff)
	}
}

// Retention deletes what a live version has not read: the archive holds it, so nothing is missing and nothing is reported.
func TestALiveVersionReadsFromTheArchiveWhatRetentionTook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newRig(t, kafkatest.Real(t), 2, sums, keeps(dir, ""))
	r.startLive()
	stop := r.agent("a", nil)
	r.produce(0, 0, 100)
	r.produce(1, 100, 100)
	r.caughtUp()
	stop()
	r.produce(0, 200, 1000)
	kafkatest.AwaitStable(t, r.brokers, r.topic, 0, 1100)
	p := archivetest.Want(t, r.pool, r.brokers, r.topic, "file://"+dir)[0]
	archivetest.Fill(t, r.pool, r.brokers, p, 50, 600, 900)
	want := r.oracle(nil)
	kafkatest.DeleteRecords(t, r.brokers, r.topic, 0, 800)
	r.agent("b", nil)
	r.caughtUp()
	if diff := cmp.Diff(want, r.served()); diff != "" {
		t.Error(diff)
	}
}

// A deploy that gives the job an archive is applied in place, also to a version that waits with a gap. So is a file that is published
// after retention took its offsets.
func TestALiveVersionThatIsGivenAnArchiveRepairsItsGap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newRig(t, kafkatest.Real(t), 1, sums)
	r.startLive()
	stop := r.agent("a", nil)
	r.produce(0, 0, 100)
	r.caughtUp()
	stop()
	r.produce(0, 100, 100)
	kafkatest.AwaitStable(t, r.brokers, r.topic, 0, 200)
	p := archivetest.Want(t, r.pool, r.brokers, r.topic, "file://"+dir)[0]
	archivetest.Fill(t, r.pool, r.brokers, p, 150)
	want := r.oracle(nil)
	kafkatest.DeleteRecords(t, r.brokers, r.topic, 0, 120)
	r.agent("b", nil)
	kafkatest.Until(t, "the gap is reported", func() bool { return positions(t, r.pool, r.ref)[0].Fault.Kind == job.FaultGap })
	exec(t, r.pool, `UPDATE kappactl.version SET spec = spec || '{"archive": {"location": "file:///x"}}'`, nil)
	kafkatest.Until(t, "the version has read all", func() bool {
		return positions(t, r.pool, r.ref)[0].Next == 200
	})
	if diff := cmp.Diff(want, r.served()); diff != "" {
		t.Error(diff)
	}
}
