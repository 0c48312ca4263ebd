package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

const (
	// mergeFiles is how many small files are merged although they make no large one together. Files of like sizes are
	// merged, so that a record is rewritten about once for each time its file has grown this many times over.
	mergeFiles = 8
	// mergeLook is how many of a partition's newest files are looked at.
	mergeLook = 256
)

// Mergeable are the files at the end of a partition's archive that are to be merged into one, in the order of offsets;
// none: not yet. Small is a file under a quarter of the size at which files roll.
func (s Store) Mergeable(ctx context.Context, db pg.DB, p Position) ([]FileRow, error) {
	newest, err := s.newest(ctx, db, p, mergeLook)
	if err != nil {
		return nil, err
	}
	files := mergeable(newest, p.Location, p.RollSize)
	slices.Reverse(files)
	return files, nil
}

// mergeable chooses from files in the order of falling offsets.
func mergeable(newest []FileRow, location string, size int64) []FileRow {
	var sum int64
	n := 0
	for ; n < len(newest); n++ {
		f := newest[n]
		if f.Gap() || f.Location != location || f.Bytes >= size/4 || sum+f.Bytes > size || n > 0 && f.Bytes > 2*sum {
			break
		}
		sum += f.Bytes
	}
	if n < 2 || n < mergeFiles && sum < size/4 {
		return nil
	}
	return newest[:n]
}

// Merge writes the records of files of one partition, whose ranges are adjacent, into one file in a temporary folder.
// memory is how many bytes of records it collects for a row group.
func Merge(ctx context.Context, l Location, temp, cluster string, files []FileRow, memory int) (_ Finished, err error) {
	first, last := files[0], files[len(files)-1]
	w, err := NewWriter(temp, first.Partition, first.From)
	if err != nil {
		return Finished{}, err
	}
	defer w.Discard() // nothing, once it is finished
	epoch := first.LeaderEpoch
	for _, f := range files {
		if err := mergeFile(ctx, l, temp, f, w, memory); err != nil {
			return Finished{}, err
		}
		epoch = max(epoch, f.LeaderEpoch)
	}
	out, err := w.Finish(Footer{
		Cluster: cluster, Partition: first.Partition,
		Range: job.Range{From: first.From, To: last.To}, LeaderEpoch: epoch,
	})
	if err == nil {
		faultpoint.Hit(MergeClosed)
	}
	return out, err
}

// mergeFile adds the records of one file.
func mergeFile(ctx context.Context, l Location, temp string, row FileRow, to *Writer, memory int) error {
	return Records(ctx, l, temp, row, func(records []*kgo.Record) error {
		for _, r := range records {
			if err := to.Add(r); err != nil {
				return err
			}
		}
		if to.Buffered() >= memory {
			return to.Flush()
		}
		return nil
	})
}

// Records hands the records of a file to f, in the order of offsets, some at a time. temp is a folder for a copy. The
// error is that of Fetch, or of f.
func Records(ctx context.Context, l Location, temp string, row FileRow, f func([]*kgo.Record) error) (err error) {
	local, err := os.CreateTemp(temp, "copy-*.parquet")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.Close(), os.Remove(local.Name())) }()
	if err := Fetch(ctx, l, row, local); err != nil {
		return err
	}
	file, err := NewFile(local)
	if err != nil {
		return &DamagedError{Range: row.Range, Location: row.Location, Name: row.Name, Why: err.Error(), Err: err}
	}
	file.WithTypes()
	most := file.Rows(chunkBytes)
	for {
		records, err := file.Next(most)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read archive file %s: %w", shelved(row), err)
		}
		if err := f(records); err != nil {
			return err
		}
	}
}
