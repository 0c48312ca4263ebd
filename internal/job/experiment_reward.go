package job

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// Reward is what an experiment compares its arms by.
type Reward struct {
	Kind      RewardKind `json:"kind"`
	Direction Direction  `json:"direction"`
	// Clip bounds what one subject counts for: the least and the most; nil: it is not bounded.
	Clip   *[2]float64  `json:"clip,omitempty"`
	Source RewardSource `json:"source"`
	// Window is how long after its first exposure the rewards of a subject count; Grace is how late they may be reported.
	Window time.Duration `json:"window"`
	Grace  time.Duration `json:"grace"`
}

// RewardKind is how the rewards of one subject add up.
type RewardKind string

// A subject has one success or none, or a sum.
const (
	Bernoulli RewardKind = "bernoulli"
	Gaussian  RewardKind = "gaussian"
)

// Direction is which of two values is better.
type Direction string

// The better value is the higher or the lower one.
const (
	Up   Direction = "up"
	Down Direction = "down"
)

// RewardSource is where rewards come from: they are posted to an agent when it has neither a query nor a topic.
type RewardSource struct {
	SQL   string        `json:"sql,omitempty"` // a PostgreSQL query for event_id, subject, value and ts
	Every time.Duration `json:"every,omitempty"`
	Lag   time.Duration `json:"lag,omitempty"` // how late its rows may be
	Kafka string        `json:"kafka,omitempty"`
	// Fields name those of a JSON record of the topic.
	Fields *RewardFields `json:"fields,omitempty"`
}

// RewardFields are the names of the fields of a reward in a record. An empty EventID: the place of the record is its
// id.
type RewardFields struct {
	EventID string `json:"event_id,omitempty"`
	Subject string `json:"subject"`
	Value   string `json:"value"`
	At      string `json:"ts"`
}

// Name is the kind of the source, as rewards are told apart by it: http, sql or kafka.
func (s RewardSource) Name() string {
	switch {
	case s.SQL != "":
		return "sql"
	case s.Kafka != "":
		return "kafka"
	}
	return sourceHTTP
}

const sourceHTTP = "http"

func rewardKeys(to **Reward) strict.Value {
	r := Reward{Direction: Up, Window: time.Hour, Grace: 5 * time.Minute}
	var clip []float64
	return strict.Then(strict.Mapping(
		strict.Key{Name: "kind", Required: true, Value: strict.OneOf(&r.Kind, Bernoulli, Gaussian)},
		strict.Key{Name: "direction", Value: strict.OneOf(&r.Direction, Up, Down)},
		strict.Key{Name: "clip", Value: strict.Each(func() strict.Value {
			var bound float64
			return strict.Then(number(&bound, -math.MaxFloat64, math.MaxFloat64),
				func(*strict.Document, string) { clip = append(clip, bound) })
		})},
		strict.Key{Name: "source", Required: true, Value: rewardSource(&r.Source)},
		strict.Key{Name: "window", Value: duration(&r.Window, time.Second, maxDays)},
		strict.Key{Name: "grace", Value: duration(&r.Grace, 0, maxDays)},
	), func(d *strict.Document, path string) {
		switch {
		case clip == nil:
		case r.Kind == Bernoulli:
			d.RefuseAt(path+".clip", "rewards of kind bernoulli are 0 or 1", "remove it")
		case len(clip) != 2 || clip[0] >= clip[1]:
			d.RefuseAt(path+".clip", "it is no range", "write the least and the most that a subject counts for: [0, 100]")
		default:
			r.Clip = &[2]float64{clip[0], clip[1]}
		}
		*to = &r
	})
}

// rewardSource takes http, or {sql: …} or {kafka: …}.
func rewardSource(to *RewardSource) strict.Value {
	var word string
	s, f := RewardSource{Every: time.Minute}, RewardFields{Subject: "subject", Value: "value", At: "ts"}
	posted := strict.Parsed(sourceHTTP, &word, func(text string) (string, error) {
		if text != sourceHTTP {
			return "", strict.Want(fmt.Sprintf("unknown source %q", text), "write http, {sql: SELECT …} or {kafka: TOPIC}")
		}
		return text, nil
	})
	return strict.Either(posted, strict.Then(strict.Mapping(
		strict.Key{Name: "sql", Value: strict.Parsed("query", &s.SQL, rewardSQL)},
		strict.Key{Name: "every", Value: duration(&s.Every, time.Second, 24*time.Hour)},
		strict.Key{Name: "lag", Value: duration(&s.Lag, 0, maxDays)},
		strict.Key{Name: "kafka", Value: strict.Parsed("topic", &s.Kafka, topicName)},
		strict.Key{Name: "fields", Value: strict.Mapping(
			strict.Key{Name: "event_id", Value: strict.Text(&f.EventID)},
			strict.Key{Name: "subject", Value: strict.Text(&f.Subject)},
			strict.Key{Name: "value", Value: strict.Text(&f.Value)},
			strict.Key{Name: "ts", Value: strict.Text(&f.At)},
		)},
	), func(d *strict.Document, path string) {
		switch {
		case (s.SQL == "") == (s.Kafka == ""):
			d.RefuseAt(path, "it has not one of sql and kafka", "write http, {sql: SELECT …} or {kafka: TOPIC}")
			return
		case s.Kafka != "" && (d.Node(path+".every") != nil || d.Node(path+".lag") != nil):
			d.RefuseAt(path, "a topic has neither every nor lag", "remove them: a topic is read all the time")
			return
		case s.SQL != "" && d.Node(path+".fields") != nil:
			d.RefuseAt(path+".fields", "a query has columns, not fields", "name its columns event_id, subject, value and ts")
			return
		case s.Kafka != "":
			s.Every, s.Fields = 0, &f
		}
		*to = s
	}))
}

// rewardSQL takes a query for rewards or for a guardrail.
func rewardSQL(text string) (string, error) {
	if ReadsOnly(text) != nil {
		return "", strict.Want("it is no query", "write one PostgreSQL query that begins with SELECT, WITH, VALUES or TABLE")
	}
	return text, nil
}

// number takes a finite number between two bounds, both included.
func number(to *float64, least, most float64) strict.Value {
	v := strict.Written("number", to, func(text string) (float64, error) {
		n, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil || math.IsNaN(n) || math.IsInf(n, 0):
			return 0, strict.Want(fmt.Sprintf("%q is no number", text), "write a number, such as 0.02")
		case most == math.MaxFloat64 && n < least:
			return 0, strict.Want(text+" is out of range", fmt.Sprintf("write a number of %v or more", least))
		case n < least || n > most:
			return 0, strict.Want(text+" is out of range", fmt.Sprintf("write a number from %v to %v", least, most))
		}
		return n, nil
	})
	v.Schema = strict.Schema{"type": []any{"number", "string"}, "title": "number"}
	return v
}
