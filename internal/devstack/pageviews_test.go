package devstack

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

type view struct {
	User *string   `json:"user_id"`
	URL  string    `json:"url"`
	TS   time.Time `json:"ts"`
	MS   *int64    `json:"duration_ms"`
}

func TestPageviewsAreInOrderAndPartlyAnonymous(t *testing.T) {
	p := newPageviews(Sample{Records: 20_000, Seed: 7})
	var last time.Time
	anonymous, count := 0, 0
	for {
		batch, err := p.next(t.Context())
		if err != nil {
			break
		}
		for _, r := range batch {
			var v view
			if err := json.Unmarshal(r.value, &v); err != nil || v.TS.Before(last) || v.URL == "" || v.MS == nil {
				t.Fatalf("%s after %s: %v", r.value, last, err)
			}
			if last = v.TS; v.User == nil {
				anonymous++
			} else if *v.User != string(r.key) {
				t.Fatalf("key %s of %s", r.key, r.value)
			}
			count++
		}
	}
	if count != 20_000 || anonymous < 800 || anonymous > 1200 {
		t.Errorf("%d records, %d anonymous", count, anonymous)
	}
}

func TestSeedFixesEveryByteOfTheSample(t *testing.T) {
	sum := func(seed uint64) string {
		h := sha256.New()
		p := newPageviews(Sample{Records: 1000, Seed: seed, Malformed: 10})
		for batch, err := p.next(t.Context()); err == nil; batch, err = p.next(t.Context()) {
			for _, r := range batch {
				h.Write(r.value)
			}
		}
		return hex.EncodeToString(h.Sum(nil))[:16]
	}
	if a, b := sum(1), sum(1); a != b {
		t.Errorf("%s and %s for one seed", a, b)
	}
	if sum(1) == sum(2) {
		t.Error("two seeds give the same records")
	}
}

func TestSampleHasTheMalformedRecordsAskedFor(t *testing.T) {
	brokers := kafkatest.Fake(t)
	loaded, err := LoadPageviews(t.Context(), LoadConfig{Kafka: kafka.Config{Brokers: brokers}, Topic: "views", Partitions: 2}, Sample{Records: 5000, Seed: 1, Malformed: 100})
	if err != nil || loaded.Records != 5000 || loaded.Partitions != 2 {
		t.Fatalf("%+v, %v", loaded, err)
	}
	bad := 0
	for _, records := range read(t, brokers, "views", 5000) {
		for _, r := range records {
			var v view
			if json.Unmarshal(r.Value, &v) != nil {
				bad++
			}
		}
	}
	if bad != 50 {
		t.Errorf("%d records cannot be read, want 50", bad)
	}
}
