package speedlayer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

const (
	maxPayload = 4 << 10 // bytes of a dead letter's value that are kept
	maxLetter  = 1 << 10 // bytes of its key and of its detail
	// keptLetters is of how many dead letters of a version and a reason key, value and detail are kept; of the others it
	// is kept where they are.
	keptLetters = 1_000
	// letterChunk is how many dead letters go into one statement.
	letterChunk = 2_000
)

// letter is a record that could not be processed.
type letter struct {
	partition job.Partition
	offset    int64
	time      *time.Time
	reason    string
	detail    string
	key       []byte
	payload   []byte
	size      int64
}

// bytes is about what the letter holds in memory.
func (l letter) bytes() int { return 200 + len(l.detail) + len(l.key) + len(l.payload) }

func newLetter(p job.Partition, rec *kgo.Record, r *format.Reject) letter {
	detail := r.Detail
	if r.Column != "" {
		detail = r.Column + ": " + detail
	}
	return letter{
		partition: p, offset: rec.Offset, time: recordTime(rec), reason: r.Reason, detail: printable(detail),
		key: head(rec.Key, maxLetter), payload: head(rec.Value, maxPayload), size: int64(len(rec.Value)),
	}
}

// larder knows of how many dead letters of a version everything is kept. Guarded by mu. Agents count for themselves
// what they write beside one another.
type larder struct {
	mu   sync.Mutex
	kept map[string]int // by reason; nil: not read yet
}

const sqlKept = `
SELECT reason, count(*)::integer AS letters FROM kappactl.dead_letter
 WHERE job = @job AND number = @number AND (payload IS NOT NULL OR key IS NOT NULL) GROUP BY reason`

// strip takes from letters what is not kept of them.
func (k *larder) strip(ctx context.Context, db pg.DB, ref job.Ref, letters []letter) error {
	if len(letters) == 0 {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil {
		type row struct {
			Reason  string
			Letters int
		}
		found, err := pg.Structs[row](ctx, db, sqlKept, refArgs(ref))
		if err != nil {
			return fmt.Errorf("count the dead letters of %s: %w", ref, err)
		}
		k.kept = map[string]int{}
		for _, r := range found {
			k.kept[r.Reason] = r.Letters
		}
	}
	for i := range letters {
		l := &letters[i]
		if k.kept[l.reason]++; k.kept[l.reason] > keptLetters {
			l.key, l.payload, l.detail = nil, nil, ""
			if l.size == 0 {
				l.size = -1 // not known: its key is not kept either
			}
		}
	}
	return nil
}

// head is a copy of the first n bytes; nil stays nil.
func head(b []byte, n int) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b[:min(len(b), n)]...)
}

// latestTime bounds the timestamps that are believed and stored.
var latestTime = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// recordTime is the record's timestamp; nil when Kafka has none or nonsense.
func recordTime(rec *kgo.Record) *time.Time {
	var n newest
	n.see(rec)
	return n.time()
}

// newest is the newest timestamp of the records that it has seen, leaving out those where Kafka has none or nonsense.
type newest struct {
	at   time.Time
	seen bool
}

func (n *newest) see(rec *kgo.Record) { n.note(rec.Timestamp) }

func (n *newest) note(t time.Time) {
	if n.seen && !t.After(n.at) || t.UnixMilli() < 0 || t.After(latestTime) {
		return
	}
	n.at, n.seen = t, true
}

// time is nil when no record had one.
func (n *newest) time() *time.Time {
	if !n.seen {
		return nil
	}
	t := n.at.UTC()
	return &t
}

const sqlDeadLetters = `
INSERT INTO kappactl.dead_letter (job, number, topic_id, topic, partition, "offset", record_time, reason, detail, key, payload, size)
SELECT @job, @number, d.topic_id, d.topic, d.partition, d.record_offset, d.record_time, d.reason, d.detail, d.key, d.payload, d.size
  FROM unnest(@topic_ids::uuid[], @topics::text[], @partitions::integer[], @offsets::bigint[], @times::timestamptz[],
              @reasons::text[], @details::text[], @keys::bytea[], @payloads::bytea[], @sizes::bigint[])
       AS d (topic_id, topic, partition, record_offset, record_time, reason, detail, key, payload, size)
ON CONFLICT DO NOTHING`

// writeLetters stores dead letters in the transaction that moves the position past them.
func writeLetters(ctx context.Context, tx *pg.Tx, ref job.Ref, letters []letter) error {
	for len(letters) > 0 {
		n := min(len(letters), letterChunk)
		if err := writeChunk(ctx, tx, ref, letters[:n]); err != nil {
			return fmt.Errorf("write dead letters: %w", err)
		}
		letters = letters[n:]
	}
	return nil
}

func writeChunk(ctx context.Context, tx *pg.Tx, ref job.Ref, letters []letter) error {
	var (
		ids, topics, reasons, details []string
		partitions                    []int32
		offsets, sizes                []int64
		times                         []*time.Time
		keys, payloads                [][]byte
	)
	for _, l := range letters {
		ids, topics, partitions = append(ids, l.partition.TopicID.String()), append(topics, l.partition.Topic),
			append(partitions, l.partition.ID)
		offsets, times, reasons = append(offsets, l.offset), append(times, l.time), append(reasons, l.reason)
		details, keys, payloads, sizes = append(details, l.detail), append(keys, l.key), append(payloads, l.payload),
			append(sizes, l.size)
	}
	args := refArgs(ref)
	args["topic_ids"], args["topics"], args["partitions"], args["offsets"] = ids, topics, partitions, offsets
	args["times"], args["reasons"], args["details"] = times, reasons, details
	args["keys"], args["payloads"], args["sizes"] = keys, payloads, sizes
	_, err := tx.Exec(ctx, sqlDeadLetters, args)
	return err
}

// printable is text that PostgreSQL takes: no NUL, valid UTF-8, bounded.
func printable(s string) string {
	out := make([]rune, 0, min(len(s), maxLetter))
	for _, r := range s {
		if len(out) == maxLetter {
			break
		}
		if r == 0 {
			r = '\uFFFD'
		}
		out = append(out, r)
	}
	return string(out)
}
