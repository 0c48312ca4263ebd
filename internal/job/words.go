package job

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Name is a job's name: a lower-case letter, then up to 39 letters, digits or underscores.
type Name string

// NamePattern is what a Name matches.
var NamePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// Number counts the stagings of one job from 1 and is never used again; 0 is what was adopted. It reads and prints as "v7".
type Number int

func (n Number) String() string { return "v" + strconv.Itoa(int(n)) }

// ParseNumber reads "v7" or "7".
func ParseNumber(s string) (Number, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(s, "v"))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("version %q: want v1, v2, …", s)
	}
	return Number(n), nil
}

// Ref names one version of one job.
type Ref struct {
	Job    Name   `json:"job"`
	Number Number `json:"number"`
}

func (r Ref) String() string { return string(r.Job) + "/" + r.Number.String() }

// Adopted says that the version is a relation that was there before its job (kappactl adopt): nothing writes it for us.
func (r Ref) Adopted() bool { return r.Number == 0 }

// Table is the name of the version's table, without schema: pageviews__v7.
func (r Ref) Table() string { return string(r.Job) + "__" + r.Number.String() }

// Staging is the name of the version's staging table, without schema.
func (r Ref) Staging() string { return r.Table() + "_staging" }

// Group is the consumer group id that carries the version's advisory offsets.
func (r Ref) Group() string { return "kappactl." + string(r.Job) + "." + r.Number.String() }

// TopicID is Kafka's own id of a topic (KIP-516); it changes when a topic is deleted and made again.
type TopicID [16]byte

func (id TopicID) String() string {
	h := hex.EncodeToString(id[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// ParseTopicID reads the text form of a UUID.
func ParseTopicID(s string) (TopicID, error) {
	var id TopicID
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("topic id %q is not a UUID", s)
	}
	copy(id[:], b)
	return id, nil
}

// Partition names one partition of one incarnation of a topic.
type Partition struct {
	Topic   string  `json:"topic"`
	TopicID TopicID `json:"topic_id"`
	ID      int32   `json:"partition"`
}

func (p Partition) String() string { return p.Topic + "/" + strconv.Itoa(int(p.ID)) }

// Range is a half-open range of offsets: From is in it, To is not.
type Range struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Len is the number of offsets, which is not a number of records: transaction markers, aborted and compacted records leave holes.
func (r Range) Len() int64 { return max(0, r.To-r.From) }

func (r Range) String() string { return fmt.Sprintf("[%d,%d)", r.From, r.To) }

// MarshalText writes a TopicID as a UUID.
func (id TopicID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads a UUID.
func (id *TopicID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseTopicID(string(b))
	return err
}
