package job

import (
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job/strict"
)

const maxDays = 36500 * 24 * time.Hour

// specKeys is the job file as a table of keys; values are put into s. The engine decides which of them are required.
func specKeys(s *Spec, e Engine) strict.Value {
	computed := e == SQL
	return strict.Mapping(
		strict.Key{Name: "job", Required: true, Value: strict.Parsed("name", &s.Job, parseName)},
		strict.Key{Name: "mode", Value: strict.OneOf(&s.Mode, Kappa, Lambda)},
		strict.Key{Name: "engine", Value: engineValue(&s.Engine)},
		strict.Key{Name: "team", Value: strict.Text(&s.Team)},
		strict.Key{Name: "source", Required: true, Value: sourceKeys(&s.Source, computed)},
		strict.Key{Name: "query", Required: computed, Value: strict.Text(&s.Query)},
		strict.Key{Name: "distinct_max", Value: strict.Int(&s.DistinctMax, 1, 10_000)},
		strict.Key{Name: "program", Required: e == ProgramRun, Value: programKeys(&s.Program)},
		strict.Key{Name: "serve", Required: true, Value: serveKeys(&s.Serve, e)},
		strict.Key{Name: "checks", Value: checkList(&s.Checks)},
		strict.Key{Name: "archive", Value: archiveKeys(&s.Archive)},
		strict.Key{Name: "batch", Value: batchKeys(&s.Batch)},
		strict.Key{Name: "experiment", Value: experimentKeys(&s.Experiment)},
		strict.Key{Name: "replay", Value: strict.Mapping(
			strict.Key{Name: "start", Value: startValue(&s.Replay)},
			strict.Key{Name: "workers", Value: strict.Int(&s.Replay.Workers, 0, 1024)},
			strict.Key{Name: "max_rate", Value: strict.Written("rate", &s.Replay.MaxRate, ParseRate)},
			strict.Key{Name: "source", Value: strict.OneOf(&s.Replay.Source, SourceAuto, SourceLog, SourceArchive)},
		)},
		strict.Key{Name: "live", Value: strict.Mapping(
			strict.Key{Name: "every", Value: duration(&s.Live.Every, 10*time.Millisecond, time.Minute)},
		)},
		strict.Key{Name: "ready", Value: strict.Mapping(
			strict.Key{Name: "max_lag_time", Value: duration(&s.Ready.MaxLagTime, time.Millisecond, maxDays)},
			strict.Key{Name: "max_lag", Value: strict.Int(&s.Ready.MaxLag, 0, 1<<53)},
			strict.Key{Name: "stable_for", Value: duration(&s.Ready.StableFor, 0, 24*time.Hour)},
		)},
		strict.Key{Name: "promote", Value: strict.OneOf(&s.Promote, PromoteManual, PromoteAuto)},
		strict.Key{Name: "keep_old", Value: duration(&s.KeepOld, 0, maxDays)},
		strict.Key{Name: "auto_retire", Value: strict.Bool(&s.AutoRetire)},
		strict.Key{Name: "tests", Value: testList(&s.Tests)},
	)
}

func sourceKeys(s *Source, columns bool) strict.Value {
	return strict.Mapping(
		strict.Key{Name: "topics", Required: true, Value: topicList(&s.Topics)},
		strict.Key{Name: "format", Value: strict.OneOf(&s.Format, Formats()...)},
		strict.Key{Name: "columns", Required: columns, Value: columnMap(&s.Columns)},
		strict.Key{Name: "on_error", Value: onErrorValue(&s.OnError)},
	)
}

// Formats lists the formats of a record's value that the job file knows.
func Formats() []string { return []string{"json", "avro", "protobuf", "debezium", "csv", "raw"} }

// The words of on_error.tombstones.
const (
	tombstonesSkip     = "skip"
	tombstonesSetAside = "dead_letter"
)

// onErrorValue takes fail, or {dead_letter: {max: 0.1%}, tombstones: skip}.
func onErrorValue(o *OnError) strict.Value {
	var word, tombstones string
	fail := strict.Parsed("fail", &word, func(text string) (string, error) {
		if text != "fail" {
			return "", strict.Want(fmt.Sprintf("unknown value %q", text),
				"write fail, or a mapping: {dead_letter: {max: 0.1%}}, {tombstones: skip}")
		}
		return text, nil
	})
	return strict.Either(
		strict.Then(fail, func(*strict.Document, string) { o.Fail, o.Max = true, 0 }),
		filled("key", strict.Mapping(
			strict.Key{Name: "dead_letter", Value: strict.Mapping(
				strict.Key{Name: "max", Value: strict.Written("percentage", &o.Max, ParsePercentage)},
			)},
			strict.Key{Name: "tombstones", Value: strict.Then(strict.OneOf(&tombstones, tombstonesSkip, tombstonesSetAside),
				func(*strict.Document, string) { o.SkipTombstones = tombstones == tombstonesSkip })},
		)),
	)
}

func serveKeys(s *Serve, e Engine) strict.Value {
	return strict.Mapping(
		strict.Key{Name: "view", Required: true, Value: strict.Parsed("view name", &s.View, ParseViewName)},
		strict.Key{Name: "columns", Value: serveColumnMap(&s.Columns)},
		strict.Key{Name: "where", Value: strict.Parsed("condition", &s.Where, condition)},
		strict.Key{Name: "table", Required: e == ProgramRun, Value: strict.Text(&s.Table)},
		strict.Key{Name: "key", Value: nameList(&s.Key)},
		strict.Key{Name: "order_by", Value: strict.Parsed("column name", &s.OrderBy, columnName)},
		strict.Key{Name: "indexes", Value: indexList(&s.Indexes)},
		strict.Key{Name: "grant", Value: grantKeys(s)},
		strict.Key{Name: "keep", Value: duration(&s.Keep, time.Hour, maxDays)},
	)
}

// grantKeys takes {select: [roles]}: readers only ever read.
func grantKeys(s *Serve) strict.Value {
	var roles []string
	list := strict.Then(uniqueTexts(&roles, "role", roleName), func(*strict.Document, string) {
		s.Grant = map[string][]string{"select": roles}
	})
	return strict.Mapping(strict.Key{Name: "select", Required: true, Value: list})
}

func duration(to *time.Duration, least, most time.Duration) strict.Value {
	return strict.Written("duration", to, func(text string) (time.Duration, error) {
		d, err := ParseDuration(text)
		switch {
		case err != nil:
			return 0, err
		case d < least:
			return 0, strict.Want(text+" is too short", "write "+FormatDuration(least)+" or more")
		case d > most:
			return 0, strict.Want(text+" is too long", "write "+FormatDuration(most)+" or less")
		}
		return d, nil
	})
}
