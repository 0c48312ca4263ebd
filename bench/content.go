package main

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// The page views: as facts of a public site would be, over three days in order of time.
const (
	pages  = 1000
	hours  = 72
	window = hours * time.Hour
)

// pageviews is n of them.
func (b *bench) pageviews(name string, n int) content {
	return content{
		name: name, records: n, partitions: b.partitions, codec: b.codec, keys: pages * hours,
		record: func(r *rand.Rand, i int) ([]byte, int, int64) {
			value, page, hour, duration := pageview(r, i, n)
			return value, page*hours + hour, duration
		},
	}
}

// pageview is record i of n.
func pageview(r *rand.Rand, i, n int) (value []byte, page, hour int, duration int64) {
	after := time.Duration(float64(window) * float64(i) / float64(n)).Truncate(time.Millisecond)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(after)
	page, hour, duration = r.IntN(pages), int(after/time.Hour), r.Int64N(5000)
	value = make([]byte, 0, 176)
	value = append(value, `{"user_id":"u`...)
	value = pad(value, uint64(r.IntN(100_000)), 6, 10)
	value = append(value, `","url":"/products/page-`...)
	value = pad(value, uint64(page), 3, 10)
	value = at.AppendFormat(append(value, `","ts":"`...), "2006-01-02T15:04:05.000Z07:00")
	value = strconv.AppendInt(append(value, `","duration_ms":`...), duration, 10)
	value = append(value, `,"agent":"Mozilla/5.0 (X11; Linux 6.1)","session":"`...)
	value = pad(value, r.Uint64(), 16, 16)
	return append(value, `"}`...), page, hour, duration
}

// scatter is a prime: i*scatter modulo the number of records visits every record once, in no order that helps anybody.
const scatter = 2_654_435_761

// events is n records of about 168 bytes whose key is one of keys, each as often as the others; with as many keys as
// records each record is a group of its own.
func (b *bench) events(name string, n, keys int) content {
	return content{
		name: name, records: n, partitions: b.partitions, codec: b.codec, keys: keys,
		record: func(r *rand.Rand, i int) ([]byte, int, int64) {
			key := int(uint64(i)*scatter%uint64(n)) % keys
			duration := r.Int64N(5000)
			value := append(make([]byte, 0, 176), `{"event":"event-`...)
			value = pad(value, uint64(key), 10, 10)
			value = strconv.AppendInt(append(value, `","duration_ms":`...), duration, 10)
			value = append(value, `,"agent":"Mozilla/5.0 (X11; Linux 6.1)","kind":"purchase","currency":"EUR","session":"`...)
			value = pad(value, r.Uint64(), 16, 16)
			value = pad(append(value, `","trace":"`...), r.Uint64(), 16, 16)
			return append(value, `"}`...), key, duration
		},
	}
}

// texts is n records of size bytes: page views with a text of words, which compresses about as well as text does, or of
// one word again and again, which compresses to almost nothing.
func texts(name string, n, size, partitions int, codec string, uniform bool) content {
	words := []string{
		"alpha", "river", "stone", "cloud", "green", "paper", "light", "seven", "north", "glass", "metal", "story", "field",
		"ocean",
	}
	c := content{name: name, records: n, partitions: partitions, codec: codec, keys: pages}
	if size >= largeRecord {
		c.largest = size + 1<<10
	}
	c.record = func(r *rand.Rand, i int) ([]byte, int, int64) {
		page, duration := r.IntN(pages), r.Int64N(5000)
		value := append(make([]byte, 0, size+32), `{"url":"/products/page-`...)
		value = pad(value, uint64(page), 3, 10)
		value = strconv.AppendInt(append(value, `","duration_ms":`...), duration, 10)
		value = append(value, `,"text":"`...)
		for uniform && len(value) < size-2 {
			value = append(value, "alpha "...)
		}
		for len(value) < size-2 {
			value = append(value, words[r.IntN(len(words))]...)
			value = append(strconv.AppendInt(append(value, ' '), int64(r.IntN(1000)), 10), ' ')
		}
		return append(value, `"}`...), page, duration
	}
	return c
}

// pad appends v in base with at least width digits.
func pad(b []byte, v uint64, width, base int) []byte {
	s := strconv.FormatUint(v, base)
	for range width - len(s) {
		b = append(b, '0')
	}
	return append(b, s...)
}
