package archive_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
)

var orders = job.Partition{Topic: "orders", TopicID: job.TopicID{1, 2, 3}, ID: 7}

// awkward are records that differ in what a file could lose.
func awkward() []*kgo.Record {
	at := time.UnixMilli
	year1677 := time.Date(1677, 9, 21, 0, 12, 43, 145_000_000, time.UTC)
	return []*kgo.Record{
		{Offset: 10, Timestamp: at(-1), Key: nil, Value: nil},
		{Offset: 11, Timestamp: at(0), Key: []byte{}, Value: []byte{}},
		{Offset: 13, Timestamp: year1677, Key: []byte("k"), Value: []byte("\x00\xff"), Headers: []kgo.RecordHeader{
			{Key: "a", Value: []byte("1")}, {Key: "b", Value: nil}, {Key: "a", Value: []byte{}}, {Key: "", Value: []byte("2")},
		}},
		{Offset: 20, Timestamp: at(1 << 53), Value: []byte(fmt.Sprint(1<<53 + 1)), Headers: []kgo.RecordHeader{{Key: "\xff", Value: []byte("x")}}},
		{Offset: 21, Timestamp: at(math.MaxInt64 / 2), Key: []byte("last")},
	}
}

// write makes a file of records with a row group after every group of them, and returns it with its bytes.
func write(t testing.TB, p job.Partition, r job.Range, records []*kgo.Record, group int) (archive.Finished, []byte) {
	t.Helper()
	w, err := archive.NewWriter(t.TempDir(), p, r.From)
	if err != nil {
		t.Fatal(err)
	}
	for i, rec := range records {
		if err := w.Add(rec); err != nil {
			t.Fatal(err)
		}
		if (i+1)%group == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	f, err := w.Finish(archive.Footer{Cluster: "c1", Partition: p, Range: r, LeaderEpoch: 4})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	return f, text
}

// read returns the records of a file from offset on.
func read(t *testing.T, text []byte, offset int64, most int) []*kgo.Record {
	t.Helper()
	f, err := archive.NewFile(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	f.From(offset)
	var out []*kgo.Record
	for {
		records, err := f.Next(most)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(records) == 0 || len(records) > most {
			t.Fatalf("%d records in an answer of at most %d", len(records), most)
		}
		out = append(out, records...)
	}
}

func TestAFileGivesItsRecordsBackAsTheyWere(t *testing.T) {
	t.Parallel()
	for _, group := range []int{1, 2, 100} {
		for _, most := range []int{1, 2, 100} {
			want := awkward()
			finished, text := write(t, orders, job.Range{From: 10, To: 30}, want, group)
			for _, r := range want {
				r.Topic, r.Partition, r.LeaderEpoch = "orders", 7, 4
			}
			if diff := cmp.Diff(want, read(t, text, 0, most), cmpopts.IgnoreUnexported(kgo.RecordAttrs{}, kgo.Record{}), cmp.Comparer(time.Time.Equal)); diff != "" {
				t.Errorf("row groups of %d, answers of %d: %s", group, most, diff)
			}
			if finished.Bytes != int64(len(text)) || finished.Footer.Records != 5 {
				t.Errorf("%+v for %d bytes", finished, len(text))
			}
			if least, most := awkward()[2].Timestamp.UnixMilli(), int64(math.MaxInt64/2); finished.MinTimestamp != least || finished.MaxTimestamp != most {
				t.Errorf("timestamps %d to %d", finished.MinTimestamp, finished.MaxTimestamp)
			}
		}
	}
}

func TestAFileIsReadFromAnOffset(t *testing.T) {
	t.Parallel()
	_, text := write(t, orders, job.Range{From: 0, To: 30}, awkward(), 2)
	for from, want := range map[int64]int{0: 5, 11: 4, 12: 3, 14: 2, 20: 2, 21: 1, 22: 0} {
		if got := read(t, text, from, 10); len(got) != want {
			t.Errorf("from %d: %d records, want %d", from, len(got), want)
		}
	}
}

func TestAFileOfManyRecordsWithAndWithoutHeaders(t *testing.T) {
	t.Parallel()
	var want []*kgo.Record
	for i := range 30_000 {
		r := &kgo.Record{Topic: "orders", Partition: 7, LeaderEpoch: 4, Offset: int64(3 * i), Timestamp: time.UnixMilli(int64(i)), Value: []byte(strings.Repeat("v", i%50))}
		for h := range i % 4 {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: fmt.Sprint("h", h), Value: []byte(fmt.Sprint(i))})
		}
		want = append(want, r)
	}
	_, text := write(t, orders, job.Range{From: 0, To: 90_000}, want, 11_000)
	got := read(t, text, 0, 5000)
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i, r := range got {
		if r.Offset != want[i].Offset || !bytes.Equal(r.Value, want[i].Value) || !slices.EqualFunc(r.Headers, want[i].Headers, sameHeader) {
			t.Fatalf("record %d: %+v, want %+v", i, r, want[i])
		}
	}
}

func TestAnEmptyRangeIsAFileWithoutRecords(t *testing.T) {
	t.Parallel()
	f, text := write(t, orders, job.Range{From: 5, To: 9}, nil, 1)
	if got := read(t, text, 0, 10); len(got) != 0 || f.Footer.Records != 0 {
		t.Errorf("%d records, footer %+v", len(got), f.Footer)
	}
}

// Damaged bytes are an error or, in the values, another hash; never a crash.
func TestDamagedFilesAreErrors(t *testing.T) {
	t.Parallel()
	_, text := write(t, orders, job.Range{From: 0, To: 30}, awkward(), 2)
	for name, damaged := range map[string][]byte{"empty": {}, "four bytes": text[:4], "half": text[:len(text)/2], "without its end": text[:len(text)-1]} {
		if _, err := archive.NewFile(bytes.NewReader(damaged)); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	for at := 3; at < len(text); at += 29 { // a file is read after its hash was checked: this is the second line
		flipped := bytes.Clone(text)
		flipped[at] ^= 0x10
		f, err := archive.NewFile(bytes.NewReader(flipped))
		for err == nil {
			_, err = f.Next(10)
		}
	}
}

func TestNamesAreReadBack(t *testing.T) {
	t.Parallel()
	f, _ := write(t, orders, job.Range{From: 10, To: 30}, awkward(), 2)
	p, r, digits, ok := archive.ParseName(f.Name())
	if !ok || p != orders || r != f.Footer.Range || !strings.HasPrefix(fmt.Sprintf("%x", f.SHA256), digits) {
		t.Errorf("%s: %v %v %s %v", f.Name(), p, r, digits, ok)
	}
	for _, name := range []string{"", "a/b", strings.TrimSuffix(f.Name(), ".parquet"), "x/" + f.Name(), strings.Replace(f.Name(), "10-30", "30-10", 1)} {
		if _, _, _, ok := archive.ParseName(name); ok {
			t.Errorf("%q is a name", name)
		}
	}
}

func sameHeader(a, b kgo.RecordHeader) bool { return a.Key == b.Key && bytes.Equal(a.Value, b.Value) }
