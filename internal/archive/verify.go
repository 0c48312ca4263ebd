package archive

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Finding is something that is wrong with an archive.
type Finding struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"` // -1: the whole topic
	From      int64  `json:"from"`
	To        int64  `json:"to"`
	File      string `json:"file"` // empty: of no file
	Cause     string `json:"cause"`
}

// Verified is what Verify has read.
type Verified struct {
	Files   int64 `json:"files"`
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
}

// pageOfFiles is how many rows of the manifest are read at once.
const pageOfFiles = 1000

// Verify reads every file of a partition's archive again: hash, footer, number of records, and whether the ranges are
// contiguous; of typed columns size and hash. found gets what is wrong. temp is a folder for one file at a time.
func (s Store) Verify(
	ctx context.Context, db pg.DB, locations *Locations, of Status, temp string, found func(Finding),
) (Verified, error) {
	var out Verified
	p, at := of.Of(), of.Start
	note := func(r job.Range, file, cause string) {
		found(Finding{Topic: p.Topic, Partition: p.ID, From: r.From, To: r.To, File: file, Cause: cause})
	}
	for {
		files, err := s.Files(ctx, db, p.TopicID, p.ID, at, pageOfFiles)
		if err != nil {
			return out, err
		}
		for _, f := range files {
			if f.From != at {
				note(job.Range{From: at, To: f.From}, "", "no row of the manifest covers these offsets")
			}
			at = f.To
			if f.Gap() {
				continue
			}
			err := verifyFile(ctx, locations, f, temp)
			var damaged *DamagedError
			switch {
			case errors.As(err, &damaged):
				note(f.Range, f.Location+"/"+f.Name, damaged.Why)
			case Missing(err):
				note(f.Range, f.Location+"/"+f.Name, "it is not there")
			case err != nil:
				return out, err
			}
			if err := s.verifyTyped(ctx, db, locations, f, func(file, cause string) { note(f.Range, file, cause) }); err != nil {
				return out, err
			}
			out.Files, out.Records, out.Bytes = out.Files+1, out.Records+f.Records, out.Bytes+f.Bytes
		}
		if len(files) < pageOfFiles {
			break
		}
	}
	if at < of.Next {
		note(job.Range{From: at, To: of.Next}, "", "no row of the manifest covers these offsets")
	}
	return out, nil
}

// verifyFile reads one file: a *DamagedError when it is not what its row lists.
func verifyFile(ctx context.Context, at *Locations, f FileRow, temp string) (err error) {
	l, err := at.Open(f.Location)
	if err != nil {
		return err
	}
	local, err := os.CreateTemp(temp, "verify-*.parquet")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.Close(), os.Remove(local.Name())) }()
	if err := Fetch(ctx, l, f, local); err != nil {
		return err
	}
	damaged := func(format string, args ...any) error {
		return &DamagedError{Location: f.Location, Name: f.Name, Why: fmt.Sprintf(format, args...)}
	}
	file, err := NewFile(local)
	if err != nil {
		return damaged("%s", err)
	}
	if file.Footer.Partition != f.Partition || file.Footer.Range != f.Range || file.Footer.Records != f.Records {
		return damaged("its footer names %s %s with %d records, its row %s %s with %d", file.Footer.Partition,
			file.Footer.Range, file.Footer.Records,
			f.Partition, f.Range, f.Records)
	}
	return nil
}

// Orphans lists the files in the folder of an archive that no row of the manifest names. A file that is being published
// now may be among them.
func (s Store) Orphans(ctx context.Context, db pg.DB, at *Locations, a Archive) ([]Entry, error) {
	l, err := at.Open(a.Location)
	if err != nil {
		return nil, err
	}
	replaced, err := s.replacedNames(ctx, db, a)
	if err != nil {
		return nil, err
	}
	typed, err := s.typedNames(ctx, db, a)
	if err != nil {
		return nil, err
	}
	var out []Entry
	for e, err := range l.List(ctx, Folder(a.Topic, a.TopicID)) {
		if err != nil {
			return nil, fmt.Errorf("list the files of the archive of %s at %s: %w", a.Topic, a.Location, err)
		}
		if replaced[e.Name] || typed[e.Name] {
			continue
		}
		p, r, _, ok := ParseName(e.Name)
		if !ok {
			if e.Name != Folder(a.Topic, a.TopicID)+"/"+markerName {
				out = append(out, e)
			}
			continue
		}
		row, found, err := s.Locate(ctx, db, p.TopicID, p.ID, r.From)
		if err != nil {
			return nil, err
		}
		if !found || row.Name != e.Name {
			out = append(out, e)
		}
	}
	return out, nil
}
