package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
)

// Views builds the SQL that reads a version; serving.Store implements it.
type Views interface {
	Select(v job.Version) string
}

// Deps are the dependencies of a comparison. Zero values of the last four mean the defaults.
type Deps struct {
	Pool   *pg.Pool
	Kafka  kafka.Config
	Admin  archive.Cluster
	Views  Views
	Temp   string           // spill folder; empty: memory only
	Memory int64            // memory limit of the engine in bytes; default 512 MB
	Shelf  *archive.Shelf   // cache of archive files; default: one in Temp
	Log    *slog.Logger     // default: none
	Now    func() time.Time // default time.Now
}

// Options sets what is compared.
type Options struct {
	// FromLogStart compares only what the log still holds: the rows whose time key is after the bucket in which the log
	// starts. It assumes that deleted records are older than the remaining ones.
	FromLogStart bool
	// From is where records are read; empty: where a replay reads them.
	From job.ReplaySource
}

// policy returns where a comparison reads records. What the archive does not hold is read from the log, also where a
// replay would not do so.
func (o Options) policy(s *job.Spec) archive.Policy {
	from, kept := cmp.Or(o.From, s.Replay.Source), s.Archive != nil
	if from == job.SourceArchive {
		from = job.SourceAuto
	}
	return archive.ReplayPolicy(from, kept)
}

// Run recomputes a version from the log and compares. Differences are in the report, not in the error. A *job.Refusal
// means that there is nothing to compare yet or, with exit code 7, names the offsets that the log no longer holds.
func Run(ctx context.Context, d Deps, ref job.Ref, o Options) (report Report, err error) {
	d = d.withDefaults()
	started := d.Now()
	v, err := loadVersion(ctx, d.Pool, ref)
	if err != nil {
		return Report{}, err
	}
	compiled, err := query.Compile(ctx, &v.spec)
	if err != nil {
		return Report{}, fmt.Errorf("compile the query of %s: %w", ref, err)
	}
	c, err := newComparison(v.Layout.Audited(), compiled.Audit)
	if err != nil {
		return Report{}, err
	}
	session, err := query.Open(ctx, query.Config{Memory: d.Memory, Temp: d.Temp})
	if err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", ref, err)
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	r := &run{
		policy: o.policy(&v.spec), Deps: d, version: v, comparison: c, fields: compiled.Fields, land: compiled.Land(),
		session: session,
	}
	if err := r.all(ctx, o); err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", ref, err)
	}
	r.report.Seconds = d.Now().Sub(started).Seconds()
	return r.report, nil
}

func (d Deps) withDefaults() Deps {
	if d.Memory == 0 {
		d.Memory = 512e6
	}
	if d.Shelf == nil {
		d.Shelf = archive.NewShelf(d.Pool, new(archive.Locations), d.Temp, archive.DefaultShelf)
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return d
}

// run is the state of one comparison.
type run struct {
	Deps
	*version
	*comparison
	fields  []string
	land    string // the statement that agents run
	session *query.Session
	spans   []*span
	cutoff  *int64 // time key, in days or microseconds, before which rows are expired
	report  Report
	policy  archive.Policy
}

func (r *run) all(ctx context.Context, o Options) error {
	r.report = Report{Job: r.Job, Version: r.Number.String(), Examples: []Example{}}
	if err := r.snapshot(ctx); err != nil {
		return err
	}
	truncated, err := r.reach(ctx, o)
	if err != nil {
		return err
	}
	if err := r.recompute(ctx, truncated); err != nil {
		return err
	}
	if err := r.expire(ctx); err != nil {
		return err
	}
	return r.compare(ctx)
}

// snapshot copies positions and rows from one snapshot of the database.
func (r *run) snapshot(ctx context.Context) error {
	return r.Pool.Snapshot(ctx, func(tx *pg.Tx) (err error) {
		if r.spans, err = readSpans(ctx, tx, r.Ref); err != nil {
			return err
		}
		plain := r.Version
		plain.Layout = plain.Layout.Whole()
		if err := r.readCutoff(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SET LOCAL extra_float_digits = 1"); err != nil {
			return fmt.Errorf("copy the served rows: %w", err)
		}
		return r.copyRows(ctx, tx, r.copySQL(r.Views.Select(plain)))
	})
}

// copyRows streams rows from PostgreSQL into table served.
func (r *run) copyRows(ctx context.Context, tx *pg.Tx, sql string) error {
	out, in := io.Pipe()
	copying := make(chan error, 1)
	go func() {
		_, err := tx.Raw().Conn().PgConn().CopyTo(ctx, in, sql)
		copying <- err
		_ = in.CloseWithError(err) // nil ends the rows
	}()
	rows := newCopied(out, len(r.columns))
	defer rows.close()
	loadErr := r.exec(ctx, r.served(), rows)
	_ = out.CloseWithError(errStopped)
	if err := <-copying; err != nil && !errors.Is(err, errStopped) {
		return fmt.Errorf("copy the served rows: %w", err)
	}
	return loadErr
}

var errStopped = errors.New("the rows are no longer wanted")

// reach compares what the version covers with what the log holds, and sets where reading starts.
func (r *run) reach(ctx context.Context, o Options) (truncated []*span, err error) {
	for _, s := range r.spans {
		s.begin(s.From)
	}
	topics, err := r.topics(ctx)
	if err != nil {
		return nil, err
	}
	lost := losses(r.spans, topics)
	for _, l := range lost {
		if !o.FromLogStart || l.whole {
			return nil, refuse(r.Ref, lost, r.timeKey() >= 0)
		}
		l.span.begin(l.start)
		truncated = append(truncated, l.span)
	}
	if len(truncated) > 0 && r.timeKey() < 0 {
		return nil, untimed(r.Layout.Shape)
	}
	return truncated, nil
}

// topics asks about each topic separately, so that a missing topic does not hide the others.
func (r *run) topics(ctx context.Context) ([]job.TopicFacts, error) {
	var out []job.TopicFacts
	log := archive.NewLog(r.Admin, r.Shelf, r.policy, false)
	asked := map[string]bool{}
	for _, s := range r.spans {
		if asked[s.Topic] {
			continue
		}
		asked[s.Topic] = true
		facts, err := log.Topics(ctx, []string{s.Topic})
		var missing *kafka.MissingTopicError
		if err != nil && !errors.As(err, &missing) {
			return nil, fmt.Errorf("read topic %s: %w", s.Topic, err)
		}
		out = append(out, facts...)
	}
	return out, nil
}

// recompute runs the query over the log into table expected, and limits both tables where the log starts too late.
func (r *run) recompute(ctx context.Context, truncated []*span) error {
	client, err := kafka.NewClient(r.Kafka)
	if err != nil {
		return err
	}
	defer client.Close()
	fetcher := archive.NewReader(kafka.NewFetcher(client, kafka.FetchConfig{}), r.Shelf, r.policy, r.Now)
	defer fetcher.Close()
	decoder, err := format.New(r.spec.Source, r.fields)
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	defer decoder.Close()
	log := &logReader{ctx: ctx, now: r.Now, fetcher: fetcher, decoder: decoder, size: batchRecords}
	defer log.drop()
	after, cut, err := r.boundary(ctx, log, truncated)
	if err != nil {
		return err
	}
	log.spans, log.records = r.spans, 0
	if err := r.fill(ctx, log); err != nil {
		return fmt.Errorf("run the query over the log: %w", err)
	}
	r.report.Records = log.records
	if cut {
		return r.cutAt(ctx, after)
	}
	return nil
}

// fill creates table expected. If the query fails over records, it finds them and leaves them out.
func (r *run) fill(ctx context.Context, log *logReader) (err error) {
	j, err := r.newJudge(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	log.judge = j
	expected := "CREATE OR REPLACE TABLE expected AS " + r.expected()
	failed := r.exec(ctx, expected, log)
	var exec *query.ExecError
	if !errors.As(failed, &exec) {
		return failed
	}
	found, err := search(log, j)
	if err != nil {
		return err
	}
	if !found { // the query fails only over all of them together
		return failed
	}
	return r.exec(ctx, expected, log)
}

// exec runs a statement over in.
func (r *run) exec(ctx context.Context, sql string, in array.RecordReader) error {
	return r.session.Run(ctx, sql, in, func(arrow.RecordBatch) error { return nil })
}

// texts runs a query of text columns and returns its rows.
func (r *run) texts(ctx context.Context, sql string, in array.RecordReader) ([][]*string, error) {
	var out [][]*string
	err := r.session.Run(ctx, sql, in, func(b arrow.RecordBatch) error {
		for row := range int(b.NumRows()) {
			values := make([]*string, b.NumCols())
			for i := range values {
				col, ok := b.Column(i).(*array.String)
				if !ok {
					return fmt.Errorf("column %d is %s, want text", i, b.Column(i).DataType())
				}
				if !col.IsNull(row) {
					s := strings.Clone(col.Value(row))
					values[i] = &s
				}
			}
			out = append(out, values)
		}
		return nil
	})
	return out, err
}

// number runs a query that returns one number, cast to text.
func (r *run) number(ctx context.Context, sql string) (int64, error) {
	rows, err := r.texts(ctx, sql, nil)
	if err != nil {
		return 0, err
	}
	if len(rows) != 1 || len(rows[0]) != 1 || rows[0][0] == nil {
		return 0, fmt.Errorf("%q returned no number", sql)
	}
	return strconv.ParseInt(*rows[0][0], 10, 64)
}
