package archive_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/s3test"
)

// published is an archive of orders/7 with files of ten offsets each, a record a minute.
type published struct {
	t         *testing.T
	pool      *pg.Pool
	dir       string
	store     archive.Store
	locations *archive.Locations
	at        archive.Position
	names     []string
}

func publish(t *testing.T, files int) *published {
	t.Helper()
	pool, _ := pgtest.New(t)
	dir := t.TempDir()
	return publishAt(t, pool, new(archive.Locations), "file://"+dir, dir, files)
}

// publisher is publish at some location.
type publisher func(t *testing.T, files int) *published

// everywhere runs a test with a folder and with a bucket.
func everywhere(t *testing.T, test func(*testing.T, publisher)) {
	t.Helper()
	t.Run("folder", func(t *testing.T) {
		t.Parallel()
		test(t, publish)
	})
	t.Run("s3", func(t *testing.T) {
		t.Parallel()
		test(t, func(t *testing.T, files int) *published {
			t.Helper()
			g := s3test.Start(t)
			name, dir := g.Bucket(t)
			pool, _ := pgtest.New(t)
			locations := &archive.Locations{S3: g.S3()}
			t.Cleanup(locations.Close)
			return publishAt(t, pool, locations, "s3://"+name+"/archives", filepath.Join(dir, "archives"), files)
		})
	})
}

// publishAt is publish at a location whose files are in dir.
func publishAt(t *testing.T, pool *pg.Pool, locations *archive.Locations, location, dir string, files int) *published {
	t.Helper()
	p := &published{t: t, pool: pool, dir: dir, locations: locations}
	p.at = wanted(t, pool, location, 0)
	l, err := locations.Open(p.at.Location)
	if err != nil {
		t.Fatal(err)
	}
	if err := archive.Mark(t.Context(), l, t.TempDir(), p.at.Archive); err != nil {
		t.Fatal(err)
	}
	for i := range files {
		from := int64(10 * i)
		var records []*kgo.Record
		for o := from; o < from+10; o += 2 {
			records = append(records, &kgo.Record{Offset: o, Timestamp: minute(o), Value: []byte("v")})
		}
		f, _ := write(t, orders, job.Range{From: from, To: from + 10}, records, 3)
		if err := l.Put(t.Context(), f.Name(), f.Path); err != nil {
			t.Fatal(err)
		}
		if err := p.store.Publish(t.Context(), pool, p.at, f); err != nil {
			t.Fatal(err)
		}
		p.names = append(p.names, f.Name())
	}
	return p
}

func minute(offset int64) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(offset) * time.Minute)
}

func (p *published) status() archive.Status {
	p.t.Helper()
	all, err := p.store.Statuses(p.t.Context(), p.pool, "orders")
	if err != nil || len(all) != 1 {
		p.t.Fatal(all, err)
	}
	return all[0]
}

func (p *published) verify() ([]archive.Finding, archive.Verified) {
	p.t.Helper()
	var found []archive.Finding
	v, err := p.store.Verify(p.t.Context(), p.pool, p.locations, p.status(), p.t.TempDir(), func(f archive.Finding) { found = append(found, f) })
	if err != nil {
		p.t.Fatal(err)
	}
	return found, v
}

// prune removes what Prunable found.
func (p *published) prune(plan archive.Prune) {
	p.t.Helper()
	var gone []archive.Unlisted
	err := p.pool.ReadCommitted(p.t.Context(), func(tx *pg.Tx) (err error) {
		gone, err = p.store.Unlist(p.t.Context(), tx, plan)
		return err
	})
	if err := errors.Join(err, p.store.Delete(p.t.Context(), p.locations, gone)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *published) exec(sql string) {
	p.t.Helper()
	if _, err := p.pool.Exec(p.t.Context(), sql); err != nil {
		p.t.Fatal(err)
	}
}

func (p *published) path(i int) string { return filepath.Join(p.dir, p.names[i]) }

func TestVerifyNamesEveryFileThatIsNotTheOnePublished(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, publish publisher) {
		p := publish(t, 7)
		if found, v := p.verify(); len(found) > 0 || v.Files != 7 || v.Records != 35 || v.Bytes != p.status().Bytes {
			t.Fatalf("an archive that is whole: %+v, %+v", found, v)
		}
		plant := map[int]func([]byte) []byte{
			1: func([]byte) []byte { return nil },
			2: func(b []byte) []byte { return b[:4] },
			3: func(b []byte) []byte { return b[:len(b)-1] },
			4: func(b []byte) []byte { b = bytes.Clone(b); b[len(b)/2] ^= 1; return b },
		}
		for i, f := range plant {
			text, err := os.ReadFile(p.path(i))
			if err == nil {
				err = os.WriteFile(p.path(i), f(text), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Remove(p.path(5)); err != nil {
			t.Fatal(err)
		}
		p.exec(`DELETE FROM kappactl.archive_file WHERE from_offset = 60`) // a hole at the end of the manifest
		found, _ := p.verify()
		if len(found) != 6 {
			t.Fatalf("%d findings: %+v", len(found), found)
		}
		for i := 1; i <= 5; i++ {
			if f := found[i-1]; !strings.HasSuffix(f.File, p.names[i]) || f.From != int64(10*i) {
				t.Errorf("file %d: %+v", i, f)
			}
		}
		if f := found[5]; f.File != "" || f.From != 60 || f.To != 70 {
			t.Errorf("the hole: %+v", f)
		}
	})
}

func TestOrphansAreWhatNoRowNames(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, publish publisher) {
		p := publish(t, 2)
		if found, err := p.store.Orphans(t.Context(), p.pool, p.locations, p.at.Archive); err != nil || len(found) > 0 {
			t.Fatalf("%+v, %v", found, err)
		}
		f, text := write(t, orders, job.Range{From: 10, To: 25}, nil, 1) // a zombie's
		if err := os.WriteFile(filepath.Join(p.dir, f.Name()), text, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := p.store.Orphans(t.Context(), p.pool, p.locations, p.at.Archive)
		if err != nil || len(found) != 1 || found[0].Name != f.Name() || found[0].Bytes != f.Bytes {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// The database is restored to before some of the files were published.
func TestRebuildPutsBackWhatTheManifestLost(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, publish publisher) {
		for name, lost := range map[string]struct {
			sql  string
			want int
		}{
			"the last three": {`UPDATE kappactl.archive_position SET next = 20, fault = 'gap', fault_from = 20, fault_to = 40`, 3},
			"all":            {`UPDATE kappactl.archive_position SET next = 45, start_offset = 45`, 5},
		} {
			p := publish(t, 5)
			want, err := p.store.Files(t.Context(), p.pool, orders.TopicID, 7, 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			p.exec(lost.sql)
			p.exec(`DELETE FROM kappactl.archive_file WHERE from_offset >= (SELECT next FROM kappactl.archive_position) OR (SELECT start_offset FROM kappactl.archive_position) = 45`)
			short, text := write(t, orders, job.Range{From: 20, To: 22}, nil, 1) // an orphan that begins where the archive ends
			if err := os.WriteFile(filepath.Join(p.dir, short.Name()), text, 0o600); err != nil {
				t.Fatal(err)
			}
			var done []archive.Rebuilt
			err = p.store.Rebuild(t.Context(), p.pool, p.locations, p.at.Archive, t.TempDir(), func(r archive.Rebuilt) { done = append(done, r) },
				func(f archive.Finding) { t.Errorf("%s: %+v", name, f) })
			if err != nil || len(done) != lost.want {
				t.Fatalf("%s: %+v, %v", name, done, err)
			}
			got, err := p.store.Files(t.Context(), p.pool, orders.TopicID, 7, 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			same := slices.EqualFunc(want, got, func(a, b archive.FileRow) bool {
				return a.Range == b.Range && a.Name == b.Name && a.Records == b.Records && bytes.Equal(a.SHA256, b.SHA256) &&
					*a.MinTimestamp == *b.MinTimestamp && *a.MaxTimestamp == *b.MaxTimestamp && a.LeaderEpoch == b.LeaderEpoch
			})
			if !same {
				t.Errorf("%s: rows %+v, want %+v", name, got, want)
			}
			if found, _ := p.verify(); len(found) > 0 || p.status().State == archive.StateFault {
				t.Errorf("%s: %+v, %+v", name, found, p.status())
			}
		}
	})
}

// A new control schema does not take over an archive before a person says that it is its own.
func TestAnArchiveOfALostDatabaseIsAdopted(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, publish publisher) {
		p := publish(t, 2)
		p.exec(`DELETE FROM kappactl.archive_file`)
		p.exec(`UPDATE kappactl.archive_position SET start_offset = 20`)
		p.exec(`UPDATE kappactl.archive SET id = gen_random_uuid(), marked_at = NULL`)
		archives, err := p.store.Archives(t.Context(), p.pool)
		if err != nil {
			t.Fatal(err)
		}
		rebuild := func(a archive.Archive) error {
			return p.store.Rebuild(t.Context(), p.pool, p.locations, a, t.TempDir(), func(archive.Rebuilt) {}, func(f archive.Finding) { t.Errorf("%+v", f) })
		}
		var marker *archive.MarkerError
		if err := rebuild(archives[0]); !errors.As(err, &marker) || marker.Found != p.at.ID {
			t.Errorf("another archive's files: %v", err)
		}
		adopted, err := p.store.Adopt(t.Context(), p.pool, p.locations, archives[0])
		if err != nil || adopted.ID != p.at.ID {
			t.Fatal(adopted, err)
		}
		if err := rebuild(adopted); err != nil {
			t.Fatal(err)
		}
		if found, v := p.verify(); len(found) > 0 || v.Files != 2 {
			t.Errorf("%+v, %+v", found, v)
		}
	})
}

func TestPruneRemovesWholeFilesFromTheBeginning(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, publish publisher) {
		p := publish(t, 4)
		for before, want := range map[int64]job.Range{0: {From: 0, To: 0}, 8: {From: 0, To: 0}, 9: {From: 0, To: 10}, 25: {From: 0, To: 20}, 100: {From: 0, To: 40}} {
			got, err := p.store.Prunable(t.Context(), p.pool, p.status(), minute(before))
			if err != nil || got.Range != want || got.Files != want.Len()/10 || got.Records != want.Len()/2 {
				t.Errorf("before minute %d: %+v, %v", before, got, err)
			}
		}
		plan, err := p.store.Prunable(t.Context(), p.pool, p.status(), minute(25))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // it may be run again
			p.prune(plan)
		}
		for i := range 4 {
			if _, err := os.Stat(p.path(i)); (err == nil) != (i >= 2) {
				t.Errorf("file %d: %v", i, err)
			}
		}
		if s := p.status(); s.Start != 20 || s.Next != 40 || s.Files != 2 {
			t.Errorf("%+v", s)
		}
		if found, _ := p.verify(); len(found) > 0 {
			t.Errorf("%+v", found)
		}
		if _, ok, err := p.store.Locate(t.Context(), p.pool, orders.TopicID, 7, 19); ok || err != nil {
			t.Errorf("an offset that was pruned is found: %v", err)
		}
	})
}
