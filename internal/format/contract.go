package format

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

// MetaColumns are the names a query may use beside the declared columns: _topic, _partition, _offset, _timestamp, _key, _headers.

// Reject is why a record cannot be processed: a stable reason code and a detail for people.
type Reject struct {
	Reason string // not_json | wrong_type | out_of_range | nul | invalid_utf8 | key_too_long | ...
	Column string
	Detail string
}

func (r *Reject) Error() string { panic("contract") }

// Decoder turns records into Arrow batches with ONE struct column named "r" (architecture §3). One goroutine owns it.
type Decoder struct{}

// New makes a decoder for the fields (declared columns and meta columns that the query reads, in struct order). batch = records a batch.
// Only columns in fields are put into the batch, but EVERY declared column is judged: whether a record is a dead letter depends on the record and the
// declared columns, not on which columns a query happens to read.
func New(src job.Source, fields []string) (*Decoder, error) { panic("contract") }

func (d *Decoder) Schema() *arrow.Schema { panic("contract") }

// Append decodes rec into the batch under construction, or leaves the batch as it was and returns why not.
func (d *Decoder) Append(rec *kgo.Record) *Reject { panic("contract") }

// Len is the number of records in the batch under construction.
func (d *Decoder) Len() int { panic("contract") }

// Take returns the batch under construction and starts a new one. The caller releases it.
func (d *Decoder) Take() arrow.RecordBatch { panic("contract") }
func (d *Decoder) Close()                  { panic("contract") }
