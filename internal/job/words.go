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

// NamePattern matches a valid Name.
var NamePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// Number counts the stagings of one job from 1 and is never reused; 0 is an adopted relation. Its text form is "v7".
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

// Adopted reports whether the version is a relation that existed before its job (kappactl adopt): kappactl does not
// write it.
func (r Ref) Adopted() bool { return r.Number == 0 }

// Table is the name of the version's table, without schema: pageviews__v7.
func (r Ref) Table() string { return string(r.Job) + "__" + r.Number.String() }

// Batch is the name of the batch table of a version of mode lambda, without schema: pageviews__v7_batch. It is
// partitioned by generation.
func (r Ref) Batch() string { return r.Table() + "_batch" }

// Member is the name of the partition of Batch that holds a generation, without schema: pageviews__v7_g3.
func (r Ref) Member(generation int) string { return r.Table() + "_g" + strconv.Itoa(generation) }

// Pointer is the name of the table of one row that names the live generation, without schema: pageviews__v7_gen.
func (r Ref) Pointer() string { return r.Table() + "_gen" }

// Known is the name of the function that returns the newest generation in the batch table, without schema:
// pageviews__v7_known.
func (r Ref) Known() string { return r.Table() + "_known" }

// StagingOf is the name of the staging table of a generation that is built, without schema: pageviews__v7_g3_staging.
func (r Ref) StagingOf(generation int) string { return r.Member(generation) + "_staging" }

// Staging is the name of the version's staging table, without schema.
func (r Ref) Staging() string { return r.Table() + "_staging" }

// Group is the consumer group id that carries the version's advisory offsets. of is the identity of its control schema:
// a copy of the database has groups of its own.
func (r Ref) Group(of string) string {
	return "kappactl." + string(r.Job) + "." + r.Number.String() + "." + of
}

// Version is a version with what its table is named and made by.
type Version struct {
	Ref
	Schema string // of the version table, of staging and of the serving view
	Layout Layout
}

// Tables are the names of the relations behind the serving view, without schema: the version's table first, then, of
// mode lambda, the batch table and the pointer.
func (v Version) Tables() []string {
	if v.Layout.Lambda {
		return []string{v.Table(), v.Batch(), v.Pointer()}
	}
	return []string{v.Table()}
}

// Filled are those of Tables that hold rows of results.
func (v Version) Filled() []string {
	if v.Layout.Lambda {
		return []string{v.Table(), v.Batch()}
	}
	return v.Tables()
}

// Replayed is the name of the table that the version's replay fills, without schema: its table or, of mode lambda,
// generation 0.
func (v Version) Replayed() string {
	if v.Layout.Lambda {
		return v.Member(0)
	}
	return v.Table()
}

// TableKey are the columns of the unique index of the version's table; none: it is over a constant.
func (v Version) TableKey() []string {
	key := v.Layout.KeyNames()
	if v.Layout.Lambda {
		key = append(key, EpochColumn)
	}
	return key
}

// Audited is the version with its layout Audited.
func (v Version) Audited() Version {
	v.Layout = v.Layout.Audited()
	return v
}

// TopicID is Kafka's id of a topic (KIP-516); it changes if a topic is deleted and recreated.
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

// Len is the number of offsets, which is not a number of records: transaction markers, aborted and compacted records
// leave holes.
func (r Range) Len() int64 { return max(0, r.To-r.From) }

func (r Range) String() string { return fmt.Sprintf("[%d,%d)", r.From, r.To) }

// MarshalText writes a TopicID as a UUID.
func (id TopicID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads a UUID.
func (id *TopicID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseTopicID(string(b))
	return err
}
