package job

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// Given is one record of a test. The short form is its value alone.
type Given struct {
	Value     *string       `json:"value,omitempty"` // in the source's format; nil: a tombstone
	Key       *string       `json:"key,omitempty"`
	Timestamp *time.Time    `json:"timestamp,omitempty"` // nil: the record has none
	Topic     string        `json:"topic,omitempty"`     // empty: the first of the source
	Partition int32         `json:"partition,omitempty"`
	Headers   []GivenHeader `json:"headers,omitempty"`
}

// GivenHeader is one header of a record.
type GivenHeader struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// GivenValue is a record with nothing but a value.
func GivenValue(value string) Given { return Given{Value: &value} }

// plain reports whether only the value is set.
func (g Given) plain() bool {
	return g.Value != nil && g.Key == nil && g.Timestamp == nil && g.Topic == "" && g.Partition == 0 && len(g.Headers) == 0
}

// MarshalJSON writes the short form if only the value is set.
func (g Given) MarshalJSON() ([]byte, error) {
	if g.plain() {
		return json.Marshal(*g.Value)
	}
	type whole Given
	return json.Marshal(whole(g))
}

// UnmarshalJSON reads both forms.
func (g *Given) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		var value string
		if err := json.Unmarshal(text, &value); err != nil {
			return fmt.Errorf("read a given record: %w", err)
		}
		*g = GivenValue(value)
		return nil
	}
	type whole Given
	if err := json.Unmarshal(text, (*whole)(g)); err != nil {
		return fmt.Errorf("read a given record: %w", err)
	}
	return nil
}

// givenList takes record values, or mappings with more of a record: one without a value is a tombstone.
func givenList(to *[]Given) strict.Value {
	return strict.Each(func() strict.Value {
		var value string
		var g Given
		put := func(*strict.Document, string) { *to = append(*to, g) }
		text := strict.Then(strict.Text(&value), func(d *strict.Document, path string) {
			g = GivenValue(value)
			put(d, path)
		})
		return strict.Either(text, strict.Then(givenKeys(&g), put))
	})
}

func givenKeys(g *Given) strict.Value {
	same := func(s string) (string, error) { return s, nil } // an empty text is a value of its own
	point := func(to **string) strict.Value {
		var text string
		v := strict.Then(strict.Parsed("text", &text, same), func(*strict.Document, string) { *to = &text })
		delete(v.Schema, "minLength")
		return v
	}
	var at time.Time
	headers := strict.Named("mapping of header names to texts",
		func(_ *strict.Document, name, _ string, _ *yaml.Node) (strict.Value, bool) {
			var value string
			return strict.Then(strict.Parsed("text", &value, same), func(*strict.Document, string) {
				g.Headers = append(g.Headers, GivenHeader{Key: name, Value: value})
			}), true
		})
	headers.Schema["additionalProperties"] = strict.Schema{"type": "string", "title": "text"}
	return strict.Mapping(
		strict.Key{Name: "value", Value: point(&g.Value)},
		strict.Key{Name: "key", Value: point(&g.Key)},
		strict.Key{Name: "timestamp", Value: strict.Then(strict.Written("time", &at, givenTime),
			func(*strict.Document, string) { g.Timestamp = &at })},
		strict.Key{Name: "topic", Value: strict.Parsed("topic", &g.Topic, topicName)},
		strict.Key{Name: "partition", Value: strict.Int(&g.Partition, 0, math.MaxInt32)},
		strict.Key{Name: "headers", Value: headers},
	)
}

// givenTime reads a record's time. Kafka keeps milliseconds.
func givenTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.UnixMilli() < 0 || !at.Truncate(time.Millisecond).Equal(at) {
		return time.Time{}, strict.Want(fmt.Sprintf("%q is not a record's time", text),
			"write it as 2026-01-31T10:00:00Z, from 1970 on and with milliseconds at most")
	}
	return at.UTC(), nil
}
