package speedlayer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/pg"
)

// landTimeout bounds the statements of a segment's transaction, of which COPY runs as long as the query gives rows
// (maxReading). It does not end a COPY that waits for rows: see copyRows, and pg.EndStuck for a process that is frozen
// in one.
const landTimeout = 2 * time.Minute

// landing writes the rows of one segment to staging and marks it done, in one transaction, which begins with the first
// row: while the segment is still being read no transaction is open.
type landing struct {
	*worker
	segment segment
	stream  *stream
	opened  time.Time
	queried time.Duration // how long the statement ran
	writing stopwatch     // of write

	ctx    context.Context // of the attempt: for how long to wait for one's turn to write
	pipe   *io.PipeWriter  // to the COPY, once there is a row
	cancel context.CancelFunc
	done   chan error // how the transaction ended
	tally  *tally     // set before the pipe is closed
	buf    []byte
	rows   int64
	began  time.Time
}

// write takes a result batch of PARTIAL.
func (l *landing) write(batch arrow.RecordBatch) error {
	l.writing.start()
	defer l.writing.stop()
	var err error
	if l.buf, err = appendCopy(l.buf[:0], l.layout, l.segment.ID, batch); err != nil {
		return err
	}
	l.rows += batch.NumRows()
	if len(l.buf) == 0 {
		return nil
	}
	if l.pipe == nil {
		l.start()
	}
	_, err = l.pipe.Write(l.buf)
	return err
}

// start opens the transaction beside the statement that gives the rows.
func (l *landing) start() {
	rows, pipe := io.Pipe()
	l.pipe, l.done = pipe, make(chan error, 1)
	l.began = l.Now()
	turn, cancel := context.WithCancel(l.ctx)
	l.cancel = cancel
	go func() {
		err := acquire(turn, l.landings)
		if err == nil {
			err = l.transact(context.Background(), rows)
			<-l.landings
		}
		rows.CloseWithError(orEnded(err)) // a writer must not wait for a reader that is gone
		l.done <- err
	}()
}

func orEnded(err error) error {
	if err == nil {
		return io.ErrClosedPipe
	}
	return err
}

// abort rolls back and returns err. When it was the transaction that failed, err came from there through the pipe.
func (l *landing) abort(err error) error {
	if l.pipe != nil {
		l.cancel()
		l.pipe.CloseWithError(err)
		<-l.done //nolint:errcheck // rolled back because of err
	}
	return err
}

// finish commits, also when ctx is done by now.
func (l *landing) finish(ctx context.Context, t *tally) error {
	l.tally = t
	var err error
	if l.pipe == nil {
		end, cancel := l.finishing(ctx)
		defer cancel()
		l.began = l.Now()
		err = l.transact(end, nil)
	} else {
		l.pipe.Close()
		err = <-l.done
		l.cancel()
	}
	if err != nil {
		return err
	}
	l.hit(faultpoint.SegmentAfterCommit)
	l.Metrics.Segments.Add(1)
	l.Metrics.Records.Add(t.records)
	l.Metrics.Bytes.Add(t.bytes)
	if !l.target.build() { // those of a build were counted when the version read them
		l.Metrics.DeadLetters.Add(int64(len(t.letters)))
	}
	return nil
}

// transact is the transaction of a segment. rows is nil when there are none.
func (l *landing) transact(ctx context.Context, rows io.Reader) error {
	err := l.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := setTimeouts(ctx, tx, landTimeout, l.idle()); err != nil {
			return err
		}
		if rows != nil {
			if err := l.copy(ctx, tx, rows); err != nil {
				return err
			}
		}
		l.hit(faultpoint.SegmentStaged)
		if err := l.larder.strip(ctx, tx, l.ref, l.tally.letters); err != nil {
			return err
		}
		if err := writeLetters(ctx, tx, l.ref, l.tally.letters); err != nil {
			return err
		}
		if err := l.markDone(ctx, tx); err != nil {
			return err
		}
		l.hit(faultpoint.SegmentBeforeCommit)
		return nil
	})
	if err != nil {
		return fmt.Errorf("stage segment %d of %s, %s %s: %w", l.segment.ID, l.ref, l.segment.partition, l.segment.span(),
			err)
	}
	return nil
}

// markDone marks the segment done up to where its stream got, and opens the rest as another segment.
func (l *landing) markDone(ctx context.Context, tx *pg.Tx) error {
	t := l.tally
	timings, err := json.Marshal(timings(l.stream, l))
	if err != nil {
		return err
	}
	args := l.segment.args()
	args["reached"], args["rows"], args["records"], args["bytes"] = t.reached, l.rows, t.records, t.bytes
	args["dead_letters"], args["record_time"], args["leader_epoch"] = len(t.letters), t.newest.time(), t.epoch
	args["timings"] = string(timings)
	if err := changeOne(ctx, tx, l.target.sql(sqlSegmentEnd), args); err != nil {
		return err
	}
	if t.reached < l.segment.ToOffset {
		return changeOne(ctx, tx, l.target.sql(sqlSegmentRest), args)
	}
	return nil
}

// plainValues has values read and written as they are, whatever the role or the database has set: in Land's texts, and
// where a merge goes by way of text.
const plainValues = `set_config('IntervalStyle', 'postgres', true), set_config('array_nulls', 'on', true),
       set_config('extra_float_digits', '1', true)`

// setTimeouts bounds the statements of a transaction and how long it may stand idle, and sets plainValues; all of it
// ends with the transaction.
func setTimeouts(ctx context.Context, tx *pg.Tx, statement, idle time.Duration) error {
	_, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', $1, true), set_config('idle_in_transaction_session_timeout', $2, true), `+plainValues,
		fmt.Sprintf("%dms", statement.Milliseconds()), fmt.Sprintf("%dms", idle.Milliseconds()))
	return err
}
