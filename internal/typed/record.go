package typed

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// rejected is a record as recordColumn holds it: bytes in base64, null where the record has none.
type rejected struct {
	Key     []byte      `json:"key"`
	Value   []byte      `json:"value"`
	Headers [][2][]byte `json:"headers,omitempty"`
}

func pack(r *kgo.Record) ([]byte, error) {
	p := rejected{Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		p.Headers = append(p.Headers, [2][]byte{[]byte(h.Key), h.Value})
	}
	return json.Marshal(p)
}

func unpack(text []byte) (*kgo.Record, error) {
	var p rejected
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("read a rejected record: %w", err)
	}
	r := &kgo.Record{Key: p.Key, Value: p.Value}
	for _, h := range p.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: string(h[0]), Value: h[1]})
	}
	return r, nil
}

// micros is a record's timestamp as the meta column _timestamp has it: NULL where the record has none.
func micros(ms int64) (us int64, ok bool) {
	return ms * 1000, ms != -1 && !time.UnixMilli(ms).IsZero()
}
