package archive_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// wanted makes an archive of orders at a folder and claims its partition.
func wanted(t *testing.T, pool *pg.Pool, location string, start int64) archive.Position {
	t.Helper()
	var s archive.Store
	err := s.Want(t.Context(), pool, archive.Wanted{
		Topic: orders.Topic, TopicID: orders.TopicID, Cluster: "c1", Location: location, RollEvery: time.Hour, RollSize: 64 << 20, Jobs: []string{"o"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddPartitions(t.Context(), pool, []job.PartitionFacts{{Partition: orders, Start: start}}); err != nil {
		t.Fatal(err)
	}
	var item, claim int64
	if err := pool.QueryRow(t.Context(), `UPDATE kappactl.archive_position SET claim = claim + 1 RETURNING id, claim`).Scan(&item, &claim); err != nil {
		t.Fatal(err)
	}
	p, err := s.Held(t.Context(), pool, item, claim)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPublishedFilesAreFoundByOffset(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	var s archive.Store
	location := "file://" + t.TempDir()
	p := wanted(t, pool, location, 10)
	if p.RollEvery != time.Hour || p.RollSize != 64<<20 || p.Next != 10 || p.Of() != orders || p.Marked {
		t.Fatalf("position %+v", p)
	}
	l, err := new(archive.Locations).Open(location)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []job.Range{{From: 10, To: 30}, {From: 30, To: 31}} {
		f, _ := write(t, orders, r, nil, 1)
		if err := l.Put(t.Context(), f.Name(), f.Path); err != nil {
			t.Fatal(err)
		}
		if err := s.Publish(t.Context(), pool, p, f); err != nil {
			t.Fatal(err)
		}
		if err := s.Publish(t.Context(), pool, p, f); !errors.Is(err, archive.ErrLost) {
			t.Errorf("the same range again: %v", err)
		}
	}
	for offset, want := range map[int64]job.Range{10: {From: 10, To: 30}, 29: {From: 10, To: 30}, 30: {From: 30, To: 31}} {
		f, ok, err := s.Locate(t.Context(), pool, orders.TopicID, 7, offset)
		if err != nil || !ok || f.Range != want {
			t.Fatalf("offset %d: %+v, %v, %v", offset, f, ok, err)
		}
		var text bytes.Buffer
		if err := archive.Fetch(t.Context(), l, f, &text); err != nil {
			t.Error(err)
		}
	}
	for _, offset := range []int64{9, 31} {
		if f, ok, err := s.Locate(t.Context(), pool, orders.TopicID, 7, offset); ok || err != nil {
			t.Errorf("offset %d: %+v, %v", offset, f, err)
		}
	}
	for from, want := range map[int64]int{0: 2, 10: 2, 29: 2, 30: 1, 31: 0} {
		if files, err := s.Files(t.Context(), pool, orders.TopicID, 7, from, 10); err != nil || len(files) != want {
			t.Errorf("from %d: %d files, %v", from, len(files), err)
		}
	}
}

// A zombie that wakes up after its partition was taken over publishes nothing.
func TestALostClaimPublishesNothing(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	var s archive.Store
	zombie := wanted(t, pool, "file:///archive", 0)
	owner := wanted(t, pool, "file:///archive", 0)
	f, _ := write(t, orders, job.Range{From: 0, To: 4}, nil, 1)
	if err := s.Publish(t.Context(), pool, zombie, f); !errors.Is(err, archive.ErrLost) {
		t.Errorf("published under a lost claim: %v", err)
	}
	if err := s.Publish(t.Context(), pool, owner, f); err != nil {
		t.Error(err)
	}
}

func TestFetchNamesAFileThatIsNotTheOnePublished(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := new(archive.Locations).Open("file://" + dir)
	if err != nil {
		t.Fatal(err)
	}
	f, text := write(t, orders, job.Range{From: 10, To: 30}, awkward(), 2)
	row := archive.FileRow{Location: "file://" + dir, Name: f.Name(), Bytes: f.Bytes, SHA256: f.SHA256}
	if err := archive.Fetch(t.Context(), l, row, &bytes.Buffer{}); !archive.Missing(err) {
		t.Errorf("a missing file: %v", err)
	}
	if err := l.Put(t.Context(), f.Name(), f.Path); err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(text)
	flipped[len(text)/2] ^= 1
	for name, planted := range map[string][]byte{"0 bytes": {}, "4 bytes": text[:4], "truncated": text[:len(text)-1], "a flipped bit": flipped, "longer": append(bytes.Clone(text), 0)} {
		if err := os.WriteFile(filepath.Join(dir, f.Name()), planted, 0o600); err != nil {
			t.Fatal(err)
		}
		var damaged *archive.DamagedError
		if err := archive.Fetch(t.Context(), l, row, &bytes.Buffer{}); !errors.As(err, &damaged) || damaged.Name != f.Name() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAMarkerTellsArchivesApart(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	location := "file://" + t.TempDir()
	a := wanted(t, pool, location, 0).Archive
	l, err := new(archive.Locations).Open(location)
	if err != nil {
		t.Fatal(err)
	}
	var wrong *archive.MarkerError
	if err := archive.CheckMarker(t.Context(), l, location, a); !errors.As(err, &wrong) || wrong.Found != "" {
		t.Errorf("no marker: %v", err)
	}
	for range 2 {
		if err := archive.Mark(t.Context(), l, t.TempDir(), a); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.CheckMarker(t.Context(), l, location, a); err != nil {
		t.Error(err)
	}
	other := a
	other.ID = "00000000-0000-0000-0000-000000000001"
	if err := archive.Mark(t.Context(), l, t.TempDir(), other); !errors.As(err, &wrong) || wrong.Found != a.ID {
		t.Errorf("another archive's marker: %v", err)
	}
}
