package devstack

import (
	"context"
	"io"
	"math/rand/v2"
	"strconv"
	"time"
)

// Sample says which page views to make up.
type Sample struct {
	Records   int
	Seed      uint64 // the same seed gives the same records everywhere
	Malformed int    // every Malformed-th record is one that cannot be processed; 0 = none
}

// LoadPageviews writes sample records to c.Topic, keyed by user: objects of user_id (null in about one of twenty), url, ts
// and duration_ms over three days, in the order of ts. c.File and c.Key are not used.
func LoadPageviews(ctx context.Context, c LoadConfig, s Sample) (Loaded, error) {
	c.File = "the sample"
	if c.Now == nil {
		c.Now = time.Now
	}
	if err := c.check(); err != nil {
		return Loaded{}, err
	}
	return c.load(ctx, newPageviews(s))
}

// pageviews makes the records of a Sample.
type pageviews struct {
	sample Sample
	random *rand.Rand
	made   int
}

func newPageviews(s Sample) *pageviews {
	return &pageviews{sample: s, random: rand.New(rand.NewPCG(s.Seed, s.Seed))} //nolint:gosec // made-up data
}

// The sample's sites and time. Lower pages are rarer.
const (
	samplePages = 50
	sampleUsers = 5000
	sampleSpan  = 72 * time.Hour
)

func sampleStart() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func (p *pageviews) close() error { return nil }

func (p *pageviews) next(ctx context.Context) ([]row, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	n := min(batchRows, p.sample.Records-p.made)
	if n <= 0 {
		return nil, io.EOF
	}
	batch := make([]row, n)
	for i := range batch {
		batch[i] = p.one()
	}
	return batch, nil
}

func (p *pageviews) one() row {
	at := sampleStart().Add(sampleSpan / time.Duration(p.sample.Records) * time.Duration(p.made)).Truncate(time.Millisecond)
	page := min(p.random.IntN(samplePages), p.random.IntN(samplePages))
	user := p.random.IntN(sampleUsers)
	anonymous := p.random.IntN(20) == 0
	duration := p.random.IntN(20_000) * p.random.IntN(20_000) / 20_000
	p.made++

	var r row
	value := []byte(`{"user_id":`)
	if anonymous {
		value = append(value, "null"...)
	} else {
		r.key = strconv.AppendInt([]byte{'u'}, int64(user), 10)
		value = append(append(append(value, '"'), r.key...), '"')
	}
	value = strconv.AppendInt(append(value, `,"url":"/page/`...), int64(page), 10)
	value = at.AppendFormat(append(value, `","ts":"`...), "2006-01-02T15:04:05.000Z07:00")
	value = strconv.AppendInt(append(value, `","duration_ms":`...), int64(duration), 10)
	value = append(value, '}')
	r.value = value
	if p.sample.Malformed > 0 && p.made%p.sample.Malformed == 0 {
		r.value = p.malformed(r.value)
	}
	return r
}

// malformed breaks a record in one of three ways: cut off, a word for a number, a time that does not exist.
func (p *pageviews) malformed(value []byte) []byte {
	switch p.random.IntN(3) {
	case 0:
		return value[:len(value)/2]
	case 1:
		return []byte(`{"user_id":"u0","url":"/page/0","ts":"2026-01-01T00:00:00.000Z","duration_ms":"long"}`)
	}
	return []byte(`{"user_id":"u0","url":"/page/0","ts":"2026-02-30T00:00:00.000Z","duration_ms":1}`)
}
