package typed

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Total counts the files that Type has written.
type Total struct {
	Files    int64 `json:"files"`
	Records  int64 `json:"records"`
	Rejected int64 `json:"rejected"` // of the records
	Bytes    int64 `json:"bytes"`
}

// pageOfFiles is how many rows of the manifest are read at once.
const pageOfFiles = 1000

// Type makes the typed files of a partition's archive that are not there yet, several at a time. temp is a folder for a
// copy of each file and what is made of it.
func (s Store) Type(ctx context.Context, db pg.DB, at *archive.Locations, of archive.Status, src job.Source,
	temp string,
) (Total, error) {
	var files, records, rejected, bytes atomic.Int64
	fingerprint := Fingerprint(src)
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	p, next := of.Of(), of.Start
	for {
		page, err := archive.Store{}.Files(within, db, p.TopicID, p.ID, next, pageOfFiles)
		if err != nil {
			return Total{}, errors.Join(err, g.Wait())
		}
		for _, f := range page {
			next = f.To
			if f.Gap() || f.Records == 0 {
				continue
			}
			g.Go(func() error {
				m, ok, err := s.one(within, db, at, f, src, fingerprint, temp)
				if ok {
					files.Add(1)
					records.Add(f.Records)
					rejected.Add(m.Rejected)
					bytes.Add(m.Bytes)
				}
				return err
			})
		}
		if len(page) < pageOfFiles {
			break
		}
	}
	err := g.Wait()
	return Total{Files: files.Load(), Records: records.Load(), Rejected: rejected.Load(), Bytes: bytes.Load()}, err
}

// one makes and publishes the typed file of one archive file. False: there is one, or the archive file is not in the
// manifest any more.
func (s Store) one(
	ctx context.Context, db pg.DB, at *archive.Locations, f archive.FileRow, src job.Source, fingerprint, temp string,
) (m Made, ok bool, err error) {
	if _, found, err := s.find(ctx, db, f, fingerprint); err != nil || found {
		return m, false, err
	}
	l, err := at.Open(f.Location)
	if err == nil {
		err = archive.CheckMarker(ctx, l, f.Location, archive.Archive{ID: f.Archive, Topic: f.Topic, TopicID: f.TopicID})
	}
	if err != nil {
		return m, false, err
	}
	if m, err = Make(ctx, l, f, src, temp); err != nil {
		return m, false, err
	}
	defer func() { err = errors.Join(err, os.Remove(m.Path)) }()
	if err := l.Put(ctx, m.Name(), m.Path); err != nil {
		return m, false, err
	}
	if ok, err = s.Publish(ctx, db, m); err == nil && !ok {
		err = s.orphaned(ctx, db, l, m)
	}
	return m, ok, err
}

// orphaned deletes a typed file that was not listed, unless another process has listed the same one.
func (s Store) orphaned(ctx context.Context, db pg.DB, l archive.Location, m Made) error {
	row, found, err := s.find(ctx, db, m.Of, m.Fingerprint)
	if err != nil || found && row.Name == m.Name() {
		return err
	}
	return l.Delete(ctx, m.Name())
}
