package archive_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
)

// typed renders records with the types of their timestamps.
func typed(records []*kgo.Record) string {
	var b bytes.Buffer
	for _, r := range records {
		fmt.Fprintf(&b, "%d %d %d %v %v %v\n", r.Offset, r.Timestamp.UnixMilli(), r.Attrs.TimestampType(), r.Key, r.Value, r.Headers)
	}
	return b.String()
}

// readTyped is read with the types of the timestamps.
func readTyped(t *testing.T, text []byte) (out []*kgo.Record) {
	t.Helper()
	f, err := archive.NewFile(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	f.WithTypes()
	for {
		records, err := f.Next(3)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, records...)
	}
}

// merge merges all files of the archive.
func (p *published) merge(keep time.Duration) (archive.Finished, []archive.FileRow) {
	p.t.Helper()
	files, err := p.store.Files(p.t.Context(), p.pool, orders.TopicID, orders.ID, 0, 100)
	if err != nil {
		p.t.Fatal(err)
	}
	l, err := p.locations.Open(p.at.Location)
	if err != nil {
		p.t.Fatal(err)
	}
	f, err := archive.Merge(p.t.Context(), l, p.t.TempDir(), "c1", files, 1)
	if err == nil {
		err = l.Put(p.t.Context(), f.Name(), f.Path)
	}
	if err == nil {
		err = p.store.Replace(p.t.Context(), p.pool, p.at, files, f, keep)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return f, files
}

func TestAMergedFileHoldsTheRecordsAsTheyWere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := new(archive.Locations).Open("file://" + dir)
	if err != nil {
		t.Fatal(err)
	}
	all := awkward()
	for i, r := range all {
		r.Attrs = kgo.NewRecordAttrs(kgo.RecordAttrsOpts{TimestampType: int8(i%3 - 1)})
	}
	var files []archive.FileRow
	for i, r := range []job.Range{{From: 5, To: 12}, {From: 12, To: 13}, {From: 13, To: 21}, {From: 21, To: 40}} {
		var in []*kgo.Record
		for _, rec := range all {
			if rec.Offset >= r.From && rec.Offset < r.To {
				in = append(in, rec)
			}
		}
		f, _ := write(t, orders, r, in, 1)
		if err := l.Put(t.Context(), f.Name(), f.Path); err != nil {
			t.Fatal(err)
		}
		files = append(files, archive.FileRow{
			Partition: orders, Range: r, Name: f.Name(), Records: f.Footer.Records, Bytes: f.Bytes, SHA256: f.SHA256, LeaderEpoch: int32(i),
		})
	}
	for _, memory := range []int{1, 1 << 20} {
		f, err := archive.Merge(t.Context(), l, t.TempDir(), "c1", files, memory)
		if err != nil {
			t.Fatal(err)
		}
		if f.Footer.Range != (job.Range{From: 5, To: 40}) || f.Footer.Records != 5 || f.Footer.LeaderEpoch != 3 || f.Footer.Cluster != "c1" {
			t.Errorf("footer %+v", f.Footer)
		}
		text, err := os.ReadFile(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := typed(readTyped(t, text)), typed(all); got != want {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
	}
}

// The rows are exchanged in one transaction, the old files stay until their time has come, and no orphan is left.
func TestMergedFilesReplaceTheirParts(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, publish publisher) {
		p := publish(t, 5)
		f, files := p.merge(time.Hour)
		if s := p.status(); s.Files != 1 || s.Records != 25 || s.Start != 0 || s.Next != 50 {
			t.Errorf("%+v", s)
		}
		if found, v := p.verify(); len(found) > 0 || v.Records != 25 {
			t.Errorf("%+v, %+v", found, v)
		}
		if orphans, err := p.store.Orphans(t.Context(), p.pool, p.locations, p.at.Archive); err != nil || len(orphans) > 0 {
			t.Errorf("orphans %+v, %v", orphans, err)
		}
		if err := p.store.Replace(t.Context(), p.pool, p.at, files, f, time.Hour); !errors.Is(err, archive.ErrLost) {
			t.Errorf("the same again: %v", err)
		}
		if due, err := p.store.Due(t.Context(), p.pool, 10); err != nil || len(due) > 0 {
			t.Errorf("due before its time: %+v, %v", due, err)
		}
		p.exec(`UPDATE kappactl.archive_replaced SET delete_at = clock_timestamp()`)
		due, err := p.store.Due(t.Context(), p.pool, 10)
		if err != nil || len(due) != 5 {
			t.Fatalf("%+v, %v", due, err)
		}
		marker := filepath.Join(p.dir, archive.Folder(orders.Topic, orders.TopicID), "kappactl-archive.json")
		if err := os.Rename(marker, marker+".gone"); err != nil {
			t.Fatal(err)
		}
		if err := p.store.Remove(t.Context(), p.pool, p.locations, due[0]); err == nil {
			t.Error("a location without its marker was cleaned")
		}
		if err := os.Rename(marker+".gone", marker); err != nil {
			t.Fatal(err)
		}
		for _, r := range append(due, due...) { // two agents at once
			if err := p.store.Remove(t.Context(), p.pool, p.locations, r); err != nil {
				t.Error(err)
			}
		}
		for i := range 5 {
			if _, err := os.Stat(p.path(i)); !os.IsNotExist(err) {
				t.Errorf("file %d: %v", i, err)
			}
		}
		if due, err := p.store.Due(t.Context(), p.pool, 10); err != nil || len(due) > 0 {
			t.Errorf("%+v, %v", due, err)
		}
		if found, _ := p.verify(); len(found) > 0 {
			t.Errorf("%+v", found)
		}
	})
}

// Files whose records must go, as prune is told, go with what they were merged from.
func TestPruneRemovesReplacedFilesToo(t *testing.T) {
	t.Parallel()
	p := publish(t, 3)
	p.merge(time.Hour)
	plan, err := p.store.Prunable(t.Context(), p.pool, p.status(), minute(1000))
	if err != nil {
		t.Fatal(err)
	}
	p.prune(plan)
	left, err := filepath.Glob(filepath.Join(p.dir, "*", "*", "*", "*.parquet"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
}

// A claim that was taken over exchanges nothing, nor do files of which one was pruned meanwhile.
func TestOnlyTheClaimMerges(t *testing.T) {
	t.Parallel()
	p := publish(t, 3)
	files, err := p.store.Files(t.Context(), p.pool, orders.TopicID, orders.ID, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := write(t, orders, job.Range{From: 0, To: 30}, nil, 1)
	old := p.at
	old.Claim--
	for what, replace := range map[string]func() error{
		"old claim": func() error { return p.store.Replace(t.Context(), p.pool, old, files, f, time.Hour) },
		"pruned": func() error {
			p.exec(`DELETE FROM kappactl.archive_file WHERE from_offset = 0`)
			return p.store.Replace(t.Context(), p.pool, p.at, files, f, time.Hour)
		},
	} {
		if err := replace(); !errors.Is(err, archive.ErrLost) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if s := p.status(); s.Files != 2 {
		t.Errorf("%+v", s)
	}
}

func TestWhichFilesAreMerged(t *testing.T) {
	t.Parallel()
	const at = "file:///a"
	row := func(bytes int64) archive.FileRow { return archive.FileRow{Location: at, Name: "f", Bytes: bytes} }
	rows := func(sizes ...int64) (out []archive.FileRow) {
		for _, s := range sizes {
			out = append(out, row(s))
		}
		return out
	}
	gap, elsewhere := archive.FileRow{Location: at}, archive.FileRow{Location: "file:///b", Name: "f", Bytes: 10}
	for what, c := range map[string]struct {
		newest []archive.FileRow
		want   int
	}{
		"none":                     {nil, 0},
		"one":                      {rows(99), 0},
		"few":                      {rows(10, 10, 10), 0},
		"enough":                   {rows(10, 10, 10, 10, 10, 10, 10, 10, 10), 9},
		"a large one together":     {rows(50, 50, 50), 3},
		"behind a large one":       {rows(10, 10, 100, 10, 10, 10, 10, 10, 10, 10), 0},
		"much larger ones later":   {rows(1, 1, 1, 50, 50, 50), 0},
		"larger ones with enough":  {rows(1, 1, 1, 1, 1, 1, 1, 1, 15, 15), 10},
		"no more than a file":      {rows(90, 90, 90, 90, 90, 90), 4},
		"a gap ends them":          {append(rows(50, 50), gap, row(50), row(50)), 2},
		"another location does":    {append(rows(50, 50), elsewhere, row(50)), 2},
		"the newest is a gap":      {append([]archive.FileRow{gap}, rows(50, 50, 50)...), 0},
		"the newest is elsewhere":  {append([]archive.FileRow{elsewhere}, rows(50, 50, 50)...), 0},
		"a quarter is not a small": {rows(100, 50, 50), 0},
	} {
		if got := archive.MergeableOf(c.newest, at, 400); len(got) != c.want {
			t.Errorf("%s: %d files, want %d", what, len(got), c.want)
		}
	}
}

// However many files come, a record is rewritten about as often as its file has grown eightfold.
func TestMergingRewritesLittle(t *testing.T) {
	t.Parallel()
	var newest []archive.FileRow
	var rewritten, total int64
	for range 10_000 {
		newest = append([]archive.FileRow{{Name: "f", Bytes: 1}}, newest...)
		total++
		if files := archive.MergeableOf(newest, "", 1<<40); len(files) > 0 {
			var sum int64
			for _, f := range files {
				sum += f.Bytes
			}
			rewritten += sum
			newest = append([]archive.FileRow{{Name: "f", Bytes: sum}}, newest[len(files):]...)
		}
	}
	if len(newest) > 64 || rewritten > 8*total {
		t.Errorf("%d files are left, %d bytes were rewritten for %d", len(newest), rewritten, total)
	}
	t.Logf("%d files are left, %d bytes were rewritten for %d", len(newest), rewritten, total)
}
