package speedlayer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// DeadLetter is a record that a version could not process, as it is kept.
type DeadLetter struct {
	Partition  job.Partition
	Offset     int64
	RecordTime *time.Time
	Reason     string
	Detail     string
	Key        []byte // its first bytes; nil: no key
	Payload    []byte // the first bytes of the value; nil: no value
	Size       int64  // bytes of the whole value
	At         time.Time
}

// Whole reports whether the complete value is kept.
func (d DeadLetter) Whole() bool { return d.Size == int64(len(d.Payload)) }

// Place names the record: topic/partition@offset.
func (d DeadLetter) Place() string { return offsetName(d.Partition, d.Offset) }

type letterRow struct {
	TopicID    string
	Topic      string
	Partition  int32
	FromOffset int64
	RecordTime *time.Time
	Reason     string
	Detail     string
	Key        *string // in hexadecimal, whatever bytea_output is
	Payload    *string
	Size       int64
	At         time.Time
}

const sqlLetters = `
SELECT topic_id::text AS topic_id, topic, partition, "offset" AS from_offset, record_time, reason, detail,
       encode(key, 'hex') AS key, encode(payload, 'hex') AS payload, size, at
  FROM kappactl.dead_letter
 WHERE job = @job AND number = @number AND (@topic::text = '' OR (topic = @topic AND partition = @partition AND "offset" = @offset))
 ORDER BY topic, partition, "offset" LIMIT @limit`

// DeadLetters are the first dead letters of a version, in the order of their places.
func (Store) DeadLetters(ctx context.Context, db pg.DB, ref job.Ref, limit int) ([]DeadLetter, error) {
	return letters(ctx, db, ref, "", 0, 0, limit)
}

// DeadLetterAt are the dead letters at one place: none or one, more only when the topic was made again.
func (Store) DeadLetterAt(ctx context.Context, db pg.DB, ref job.Ref, topic string, partition int32,
	offset int64,
) ([]DeadLetter, error) {
	return letters(ctx, db, ref, topic, partition, offset, 10)
}

func letters(ctx context.Context, db pg.DB, ref job.Ref, topic string, partition int32, offset int64,
	limit int,
) ([]DeadLetter, error) {
	args := refArgs(ref)
	args["topic"], args["partition"], args["offset"], args["limit"] = topic, partition, offset, limit
	rows, err := pg.Structs[letterRow](ctx, db, sqlLetters, args)
	if err != nil {
		return nil, fmt.Errorf("read dead letters of %s: %w", ref, err)
	}
	out := make([]DeadLetter, len(rows))
	for i, r := range rows {
		id, err := job.ParseTopicID(r.TopicID)
		key, keyErr := fromHex(r.Key)
		payload, payloadErr := fromHex(r.Payload)
		if err := errors.Join(err, keyErr, payloadErr); err != nil {
			return nil, fmt.Errorf("read dead letters of %s: %w", ref, err)
		}
		out[i] = DeadLetter{
			Partition: job.Partition{Topic: r.Topic, TopicID: id, ID: r.Partition}, Offset: r.FromOffset,
			RecordTime: r.RecordTime,
			Reason:     r.Reason, Detail: r.Detail, Key: key, Payload: payload, Size: r.Size, At: r.At.UTC(),
		}
	}
	return out, nil
}

// fromHex gives the bytes of a column; nil stays nil.
func fromHex(text *string) ([]byte, error) {
	if text == nil {
		return nil, nil
	}
	return hex.DecodeString(*text)
}
