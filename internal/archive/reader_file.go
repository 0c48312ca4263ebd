package archive

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafka"
)

// opened is a file that a reader reads.
type opened struct {
	row  FileRow
	book *book
	file *File
	next int64 // the offset that its next records follow
	most int   // records of an answer
}

func (o *opened) close(s *Shelf) {
	_ = o.file.Close() // it was only read
	s.give(o.row, o.book)
}

// read answers a cursor from the file of its place. A file that is not there may have been merged into another one: the
// manifest is asked again.
func (r *Reader) read(ctx context.Context, c kafka.Cursor, p *place) kafka.Fetched {
	f, err := r.records(ctx, c, p)
	if Missing(err) {
		before := p.row
		if err := r.find(ctx, c.Partition, p); err != nil {
			return failed(c, err)
		}
		if p.source == fromFile && shelved(p.row) != shelved(before) {
			f, err = r.records(ctx, c, p)
		}
	}
	if err != nil {
		r.Rest()
		p.due = r.now().Add(retryAfter)
		return failed(c, r.shelf.judge(p.row, err, r.now()))
	}
	p.next = f.Next
	if f.Next >= p.row.To {
		p.source = unknown
		if r.policy == LogFirst && r.find(ctx, c.Partition, p) != nil { // the log may still lack what comes
			p.source = fromLog // which asks again
		}
	}
	return f
}

func (r *Reader) records(ctx context.Context, c kafka.Cursor, p *place) (kafka.Fetched, error) {
	if !r.inHand(c) || r.open.next > c.Next {
		r.Rest()
		o, err := r.shelf.openFile(ctx, p.row)
		if err != nil {
			return kafka.Fetched{}, err
		}
		r.open = o
	}
	o := r.open
	o.file.From(c.Next)
	out := kafka.Fetched{
		Partition: c.Partition, Next: p.row.To, LeaderEpoch: c.LeaderEpoch, LogStart: p.row.From, LastStable: p.row.To,
		End: p.row.To,
	}
	if out.LeaderEpoch >= 0 {
		out.LeaderEpoch = max(out.LeaderEpoch, p.row.LeaderEpoch)
	}
	records, err := o.file.Next(o.most)
	switch {
	case errors.Is(err, io.EOF):
	case err != nil:
		return kafka.Fetched{}, &DamagedError{
			Range: p.row.Range, Location: p.row.Location, Name: p.row.Name,
			Why: err.Error(), Err: err,
		}
	default:
		out.Records, out.Next = records, records[len(records)-1].Offset+1
	}
	for _, rec := range out.Records {
		out.Bytes += len(rec.Key) + len(rec.Value)
	}
	o.next = out.Next
	return out, nil
}

// openFile takes a copy of a file and opens it.
func (s *Shelf) openFile(ctx context.Context, row FileRow) (*opened, error) {
	b, err := s.take(ctx, row)
	if err != nil {
		return nil, err
	}
	f, err := NewFile(b.section())
	if err == nil && (f.Footer.TopicID != row.TopicID || f.Footer.ID != row.ID || f.Footer.Range != row.Range) {
		err = errors.Join(errors.New("its footer names other offsets than the manifest"), f.Close())
	}
	if err != nil {
		s.give(row, b)
		return nil, &DamagedError{Range: row.Range, Location: row.Location, Name: row.Name, Why: err.Error(), Err: err}
	}
	return &opened{row: row, book: b, file: f, next: row.From, most: f.Rows(chunkBytes)}, nil
}

// first is the first record from an offset on that fits; nil when none does.
func (o *opened) first(from int64, fits func(*kgo.Record) bool) (*kgo.Record, error) {
	o.file.From(from)
	for {
		records, err := o.file.Next(o.most)
		if errors.Is(err, io.EOF) {
			return nil, nil //nolint:nilnil // none
		}
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(records, fits); i >= 0 {
			return records[i], nil
		}
	}
}
