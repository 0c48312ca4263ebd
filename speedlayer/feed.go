package speedlayer

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// feed is the reader that PARTIAL pulls its records from. One goroutine owns it.
type feed struct {
	schema  *arrow.Schema
	pull    func() (arrow.RecordBatch, error) // nil, nil at the end
	current arrow.RecordBatch
	err     error
}

var _ array.RecordReader = (*feed)(nil)

// Retain does nothing: the one owner releases it.
func (f *feed) Retain() {}

// Release gives back the batch in hand.
func (f *feed) Release() {
	if f.current != nil {
		f.current.Release()
		f.current = nil
	}
}

// Schema is that of all batches.
func (f *feed) Schema() *arrow.Schema { return f.schema }

// Next moves to the next batch.
func (f *feed) Next() bool {
	f.Release()
	if f.err != nil {
		return false
	}
	f.current, f.err = f.pull()
	return f.current != nil && f.err == nil
}

// RecordBatch is the batch in hand, valid until Next.
func (f *feed) RecordBatch() arrow.RecordBatch { return f.current }

// Record is the deprecated name of RecordBatch; the interface asks for it.
func (f *feed) Record() arrow.RecordBatch { return f.current }

// Err is the error that ended the feed early.
func (f *feed) Err() error { return f.err }

// drain takes what the statement left unread: an engine that sees that no row can pass does not read its input, but
// every record is judged.
func (f *feed) drain() error {
	for f.Next() {
	}
	f.Release()
	return f.err
}
