package job

import "time"

// Spec is a job file with its defaults filled in. Its JSON form is kept in version.spec.
type Spec struct {
	Job    Name   `json:"job"`
	Mode   Mode   `json:"mode"`
	Engine Engine `json:"engine,omitempty"`
	Team   string `json:"team,omitempty"`
	Source Source `json:"source"`
	Query  string `json:"query"`
	// DistinctMax is how many values an aggregate such as count(DISTINCT x) or list(x) keeps in a row; 0: none does.
	DistinctMax int           `json:"distinct_max,omitempty"`
	Serve       Serve         `json:"serve"`
	Checks      []Check       `json:"checks,omitempty"`
	Replay      Replay        `json:"replay"`
	Archive     *Archive      `json:"archive,omitempty"`    // nil: the job keeps no archive
	Program     *Program      `json:"program,omitempty"`    // of engine: program
	Batch       *Batch        `json:"batch,omitempty"`      // nil: a job that is not Lambda, or its defaults
	Experiment  *Experiment   `json:"experiment,omitempty"` // nil: its defaults
	Live        LiveSettings  `json:"live"`
	Ready       ReadySettings `json:"ready"`
	Promote     PromoteMode   `json:"promote,omitempty"` // empty: auto for a job's first version, manual later
	KeepOld     time.Duration `json:"keep_old"`
	AutoRetire  bool          `json:"auto_retire"`
	Tests       []Test        `json:"tests,omitempty"`

	// File is the path the job was read from and Text its bytes, for errors.
	File string `json:"-"`
	Text []byte `json:"-"`
	// Expanded is Text with the values of its variables, for the record. Variables are their names, sorted.
	Expanded  []byte   `json:"-"`
	Variables []string `json:"-"`

	places map[string]place
}

// Mode is the architecture a job runs as.
type Mode string

// The two architectures.
const (
	Kappa  Mode = "kappa"
	Lambda Mode = "lambda"
)

// PromoteMode decides who flips the view.
type PromoteMode string

// The two ways to promote.
const (
	PromoteManual PromoteMode = "manual"
	PromoteAuto   PromoteMode = "auto"
)

// Source describes the records that a job reads.
type Source struct {
	Topics  []string `json:"topics"`
	Format  string   `json:"format"`
	Columns []Column `json:"columns"`
	OnError OnError  `json:"on_error"`
}

// Column is a value inside a record's value, with its PostgreSQL type name. Columns are in the order of the job file.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`           // canonical: bigint, text, timestamp with time zone, numeric(10,2), …
	Unit string `json:"unit,omitempty"` // s, ms, us or ns for epoch numbers in a time column
	// Path is where the value is, as PathText writes it; empty: the member of the column's name.
	Path string `json:"path,omitempty"`
}

// OnError defines what happens to a record that cannot be processed.
type OnError struct {
	Fail bool `json:"fail"`
	// Max is the largest share of dead letters that still counts as healthy: 0.001 for 0.1%.
	Max float64 `json:"max"`
	// SkipTombstones leaves records without a value out: they are neither rows nor dead letters.
	SkipTombstones bool `json:"skip_tombstones,omitempty"`
}

// Serve is how results are served. Its SQL texts are PostgreSQL.
type Serve struct {
	View    ViewName            `json:"view"`
	Columns []ServeColumn       `json:"columns,omitempty"`
	Where   string              `json:"where,omitempty"`
	Table   string              `json:"table,omitempty"` // of engine: program, as TableLayout reads it
	Key     []string            `json:"key,omitempty"`
	OrderBy string              `json:"order_by,omitempty"`
	Indexes [][]string          `json:"indexes,omitempty"`
	Grant   map[string][]string `json:"grant,omitempty"`
	Keep    time.Duration       `json:"keep,omitempty"`
}

// ServeColumn is a column computed after the merge.
type ServeColumn struct {
	Name string `json:"name"`
	Expr string `json:"expr"`
}

// ViewName is schema and name of the serving view; version tables live in the same schema.
type ViewName struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
}

func (v ViewName) String() string { return v.Schema + "." + v.Name }

// Replay is how history is read.
type Replay struct {
	Start   string `json:"start"`    // earliest, latest, an RFC 3339 time, -30d
	Workers int    `json:"workers"`  // over all agents; 0 = CPUs
	MaxRate int64  `json:"max_rate"` // bytes a second over all workers; 0 = no limit
	// Offsets are explicit start offsets by "topic/partition"; nil otherwise.
	Offsets map[string]int64 `json:"offsets,omitempty"`
	// Source is where records are read from; empty: the file does not say, which means SourceAuto.
	Source ReplaySource `json:"source,omitempty"`
}

// LiveSettings is how new records are committed.
type LiveSettings struct {
	Every time.Duration `json:"every"`
}

// ReadySettings is when a version counts as caught up: lag time or unread records within the limit, for StableFor.
type ReadySettings struct {
	MaxLagTime time.Duration `json:"max_lag_time"`
	MaxLag     int64         `json:"max_lag"` // records; 0 = only the time counts
	StableFor  time.Duration `json:"stable_for"`
}

// Test is one of the job's own tests.
type Test struct {
	Name   string           `json:"name"`
	Given  []Given          `json:"given"`
	Expect []map[string]any `json:"expect"`
	// DeadLetters are the given records that become dead letters, counted from 1; nil: the test does not say.
	DeadLetters []int `json:"dead_letters,omitempty"`
}
