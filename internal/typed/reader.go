package typed

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
)

// Reader answers cursors from typed files. One goroutine owns it; it holds at most one file at a time.
type Reader struct {
	db          pg.DB
	shelf       *archive.Shelf
	decoder     *format.Decoder // that makes the batches
	fingerprint string
	declared    []arrow.Field // nil: the decoder reads what no typed file has
	sources     []source
	release     func()
	warn        func(error)

	raw  map[job.Partition]job.Range // offsets that no typed file has
	file *typedFile                  // in hand; nil: none
	give func()                      // lets go of its copy
}

// NewReader returns a reader of the batches that a decoder makes of a source's records. release lets go of the copies
// of files that the caller holds, so that none waits for another one; warn gets what is wrong with typed files.
func NewReader(db pg.DB, shelf *archive.Shelf, src job.Source, d *format.Decoder, release func(),
	warn func(error),
) (*Reader, error) {
	all, err := declared(src)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	r := &Reader{
		db: db, shelf: shelf, decoder: d, fingerprint: Fingerprint(src), release: release, warn: warn,
		raw: map[job.Partition]job.Range{},
	}
	var ok bool
	if r.sources, ok = sources(d, fieldsOf(all)); ok {
		r.declared = fieldsOf(all)
	}
	return r, nil
}

// declared is a decoder of all declared columns.
func declared(src job.Source) (*format.Decoder, error) {
	names := make([]string, len(src.Columns))
	for i, c := range src.Columns {
		names[i] = c.Name
	}
	src.OnError.SkipTombstones = false // what a tombstone becomes is decided when it is read
	return format.New(src, names)
}

// Next returns records from the cursor on, those below to. ok is false where no typed file has them, or where it cannot
// be read: they are to be read raw. The error is that of ctx.
func (r *Reader) Next(ctx context.Context, c kafka.Cursor, to int64) (_ Chunk, ok bool, err error) {
	if r.declared == nil {
		return Chunk{}, false, nil
	}
	if raw := r.raw[c.Partition]; c.Next >= raw.From && c.Next < raw.To {
		return Chunk{}, false, nil
	}
	whole := job.Range{From: c.Next, To: to}
	chunk, err := r.next(ctx, c, to, &whole)
	switch {
	case err == nil:
		return chunk, true, nil
	case ctx.Err() != nil:
		return Chunk{}, false, ctx.Err()
	case !errors.Is(err, errNone):
		r.warn(err)
	}
	r.Rest()
	r.raw[c.Partition] = whole
	return Chunk{}, false, nil
}

// errNone is an offset that no typed file has.
var errNone = errors.New("there is no typed file")

// next reads on. of becomes the range of the archive file that holds the cursor.
func (r *Reader) next(ctx context.Context, c kafka.Cursor, to int64, of *job.Range) (Chunk, error) {
	f := r.file
	if f == nil || f.of.Partition != c.Partition || c.Next < max(f.of.From, f.at) || c.Next >= f.of.To {
		r.Rest()
		if err := r.open(ctx, c, of); err != nil {
			return Chunk{}, err
		}
		f = r.file
	}
	*of = f.of.Range
	chunk, err := f.next(c.Next, min(to, f.of.To), r.decoder)
	switch {
	case errors.Is(err, io.EOF): // holes up to the end
		chunk = Chunk{Next: min(to, f.of.To), Newest: -1}
	case err != nil:
		return Chunk{}, err
	}
	if chunk.LeaderEpoch = c.LeaderEpoch; c.LeaderEpoch >= 0 {
		chunk.LeaderEpoch = max(c.LeaderEpoch, f.of.LeaderEpoch)
	}
	return chunk, nil
}

// open takes the typed file of the archive file that holds the cursor in hand.
func (r *Reader) open(ctx context.Context, c kafka.Cursor, of *job.Range) error {
	row, ok, err := archive.Store{}.Locate(ctx, r.db, c.TopicID, c.ID, c.Next)
	if err != nil {
		return err
	}
	if !ok || row.Gap() {
		return errNone
	}
	*of = row.Range
	typed, ok, err := Store{}.find(ctx, r.db, row, r.fingerprint)
	if err != nil {
		return err
	}
	if !ok {
		return errNone
	}
	r.release()
	section, give, err := r.shelf.Copy(ctx, typed)
	if err != nil {
		return err
	}
	f, err := open(section, row, r.fingerprint, r.declared, r.sources)
	if err != nil {
		give()
		return &archive.DamagedError{Range: row.Range, Location: row.Location, Name: typed.Name, Why: err.Error(), Err: err}
	}
	r.file, r.give = f, give
	return nil
}

// Rest lets go of the file in hand and forgets where there was none. Reading may go on.
func (r *Reader) Rest() {
	clear(r.raw)
	if r.file != nil {
		_ = r.file.reader.Close() // it was only read
		r.give()
		r.file, r.give = nil, nil
	}
}
