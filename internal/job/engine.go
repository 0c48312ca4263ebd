package job

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// Engine is the kind of work that computes a job's results.
type Engine string

// The engines. SQL, which runs the query of the job file, is the default and the zero value.
const (
	SQL        Engine = ""
	ProgramRun Engine = "program" // a program of the user's own, which agents start and supervise
)

// sqlWord is how a job file names SQL.
const sqlWord = "sql"

func (e Engine) String() string {
	if e == SQL {
		return sqlWord
	}
	return string(e)
}

// Program is how agents run the program of a job.
type Program struct {
	Command   []string      `json:"command"` // an absolute path, then arguments
	Instances int           `json:"instances"`
	Commit    CommitMode    `json:"commit"`
	Grace     time.Duration `json:"grace"` // between SIGTERM and SIGKILL
}

// CommitMode is where a program notes how far it is.
type CommitMode string

// The ways to commit: by kappactl.advance in the transaction that writes the results, or to the consumer group.
const (
	CommitTable CommitMode = "table"
	CommitGroup CommitMode = "group"
)

// maxInstances bounds the processes of one version.
const maxInstances = 64

// engineOf is the engine that a job file names, read before its other keys because it decides which of them are
// required. What is wrong with the text is found by reading it whole.
func engineOf(text []byte) Engine {
	var named struct {
		Engine string `yaml:"engine"`
	}
	if yaml.Unmarshal(text, &named) != nil || named.Engine == sqlWord {
		return SQL
	}
	return Engine(named.Engine)
}

func engineValue(to *Engine) strict.Value {
	var word Engine
	return strict.Then(strict.OneOf(&word, Engine(sqlWord), ProgramRun), func(*strict.Document, string) {
		if *to = word; word == sqlWord {
			*to = SQL
		}
	})
}

func programKeys(to **Program) strict.Value {
	p := Program{Instances: 1, Commit: CommitTable, Grace: 30 * time.Second}
	return strict.Then(strict.Mapping(
		strict.Key{Name: "command", Required: true, Value: strict.Texts(&p.Command)},
		strict.Key{Name: "instances", Value: strict.Int(&p.Instances, 1, maxInstances)},
		strict.Key{Name: "commit", Value: strict.OneOf(&p.Commit, CommitTable, CommitGroup)},
		strict.Key{Name: "grace", Value: duration(&p.Grace, time.Second, time.Hour)},
	), func(d *strict.Document, at string) {
		switch {
		case len(p.Command) == 0 || !filepath.IsAbs(p.Command[0]) || path.Clean(p.Command[0]) != p.Command[0]:
			d.RefuseAt(at+".command", "the first word is not the absolute path of a program",
				"write the path as agents see it, without . and .., such as [/opt/jobs/sessions, --gap, 30m]")
		case strings.ContainsRune(strings.Join(p.Command, ""), 0):
			d.RefuseAt(at+".command", "a word holds a NUL", "remove it")
		default:
			*to = &p
		}
	})
}

// engineRules refuses the settings that the engine of the job has no use for.
func engineRules(s *Spec, d *strict.Document) {
	if s.Engine == SQL {
		for _, key := range []string{"program", "serve.table"} {
			if d.Node(key) != nil {
				d.RefuseAt(key, key+" without engine: program", "add engine: program, or remove it")
			}
		}
		return
	}
	for _, key := range []struct{ path, cure string }{
		{"query", "remove it: the program computes the results"},
		{"distinct_max", "remove it: the program computes the results"},
		{"source.columns", "remove it: the program decodes the records"},
		{"source.format", "remove it: the program decodes the records"},
		{"source.on_error", "remove it: the program decides about records that it cannot process"},
		{"serve.key", "remove it: the key is the PRIMARY KEY of serve.table"},
		{"serve.order_by", "remove it: the program decides which record is the latest"},
		{"serve.keep", "remove it: the program deletes the rows that it no longer keeps"},
		{"tests", "test the program with its own test tool, and guard the flip with checks"},
		{"live", "remove it: the program decides how often it commits"},
		{"replay.workers", "write program.instances"},
		{"replay.max_rate", "remove it: the program decides how fast it reads"},
		{"replay.source", "remove it: the program reads the log"},
		{"archive", "keep the archive with a job of engine: sql over the same topics"},
	} {
		if d.Node(key.path) != nil {
			d.RefuseAt(key.path, fmt.Sprintf("engine: %s has no %s", s.Engine, key.path), key.cure)
		}
	}
	if s.Mode == Lambda {
		d.RefuseAt("mode", "engine: program in mode: lambda",
			"write mode: kappa: batch generations are computed by engine: sql")
	}
}
