package speedlayer

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/archivetest"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/typed"
)

// typedRig is a rig whose topic has 2,000 records, every 50th not decodable and every 70th a tombstone, in two archive files and their
// typed files. All of it is frozen.
func typedRig(t *testing.T) (r *rig, dir string, raw, decoded, want []string) {
	t.Helper()
	dir = t.TempDir()
	r = newRig(t, kafkatest.Real(t), 1, sums, keeps(dir, job.SourceArchive))
	records := make([]*kgo.Record, 2000)
	for i := range records {
		records[i] = &kgo.Record{Topic: r.topic, Key: fmt.Append(nil, i), Value: value(i)}
		switch {
		case i%50 == 0:
			records[i].Value = []byte(`{"k":1`)
		case i%70 == 0:
			records[i].Value = nil
		}
	}
	kafkatest.ProduceRecords(t, r.brokers, records)
	kafkatest.AwaitStable(t, r.brokers, r.topic, 0, 2000)
	p := archivetest.Want(t, r.pool, r.brokers, r.topic, "file://"+dir)[0]
	raw = archivetest.Fill(t, r.pool, r.brokers, p, 700, 2000)
	status, err := archive.Store{}.Statuses(t.Context(), r.pool, r.topic)
	if err != nil {
		t.Fatal(err)
	}
	total, err := typed.Store{}.Type(t.Context(), r.pool, new(archive.Locations), status[0], r.spec.Source, t.TempDir())
	if err != nil || total.Files != 2 || total.Records != 2000 || total.Rejected != 63 {
		t.Fatalf("%+v, %v", total, err)
	}
	decoded, err = filepath.Glob(filepath.Join(dir, "*", "*", "typed-*", "0", "*.parquet"))
	if err != nil || len(decoded) != 2 {
		t.Fatal(decoded, err)
	}
	want = r.oracle(nil)
	inTx(t, r.pool, func(tx *pg.Tx) error { return Store{}.Freeze(t.Context(), tx, at(r.ref, r.layout), r.frozen(450)) })
	return r, dir, raw, decoded, want
}

// letterLines are the dead letters, with all that is kept of them.
func (r *rig) letterLines() []string {
	return lines(r.t, r.pool, `SELECT "offset", record_time IS NOT NULL, reason, detail, key, payload, size FROM kappactl.dead_letter ORDER BY "offset"`)
}

func (r *rig) replayed(t *testing.T, want []string) (letters, segments []string) {
	t.Helper()
	r.phase(job.Replaying)
	r.agent("a", nil)
	r.staged()
	if diff := cmp.Diff(want, r.served()); diff != "" {
		t.Error(diff)
	}
	return r.letterLines(), lines(t, r.pool, `SELECT from_offset, to_offset, records FROM kappactl.segment ORDER BY from_offset`)
}

// The archive files are not there: only typed columns can give what is served. Dead letters are those of a replay of the records.
func TestAReplayFromTypedColumnsEqualsOneOfTheRecords(t *testing.T) {
	t.Parallel()
	r, dir, raw, _, want := typedRig(t)
	for _, name := range raw {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	letters, segments := r.replayed(t, want)
	if len(letters) != 63 {
		t.Errorf("%d dead letters", len(letters))
	}
	other, _, _, decoded, want := typedRig(t)
	for _, path := range decoded {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	rawLetters, rawSegments := other.replayed(t, want)
	if diff := cmp.Diff(rawLetters, letters); diff != "" {
		t.Errorf("dead letters: records (-), typed columns (+):\n%s", diff)
	}
	if diff := cmp.Diff(rawSegments, segments); diff != "" {
		t.Errorf("segments: records (-), typed columns (+):\n%s", diff)
	}
}

func TestDamagedTypedColumnsAreNotUsed(t *testing.T) {
	t.Parallel()
	r, _, _, decoded, want := typedRig(t)
	for _, path := range decoded {
		text, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)/2] ^= 1
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.replayed(t, want)
}
