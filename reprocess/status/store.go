package status

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Config sets the limits of warnings. Zero fields mean the defaults.
type Config struct {
	OldTransaction time.Duration // age of an open transaction, default 5 minutes
	DeadRows       int64         // number of dead rows of a table, if it exceeds that of the live ones, default 10,000
}

// Store reads the status of jobs. It is safe for concurrent use.
type Store struct {
	pool   *pg.Pool
	config Config
}

// New creates a Store on a migrated control schema.
func New(pool *pg.Pool, c Config) *Store {
	c.OldTransaction = cmp.Or(c.OldTransaction, 5*time.Minute)
	c.DeadRows = cmp.Or(c.DeadRows, 10_000)
	return &Store{pool: pool, config: c}
}

// versionRow is a row of kappactl.version with its counters.
type versionRow struct {
	Job          string
	Number       int
	Hash         string
	Phase        job.Phase
	PhaseSince   time.Time
	PausedAt     *time.Time
	PinnedAt     *time.Time
	Verdict      job.Verdict
	Reason       reason.Reason
	StandbyUntil *time.Time
	RolledBackAt *time.Time
	StaleSince   *time.Time
	ExitCode     *int
	Error        reason.Reason
	GitRevision  string
	CreatedBy    string
	CreatedAt    time.Time
	EndedAt      *time.Time
	Records      int64
	DeadLetters  int64
	Incomplete   bool
	Warnings     []reason.Reason
	Lambda       bool
}

// observationRow is a row of kappactl.observation.
type observationRow struct {
	Job         string
	Number      int
	Topic       string
	Partition   int32
	SampledAt   time.Time
	LogStart    *int64
	LastStable  *int64
	EndOffset   *int64
	Position    *int64
	LagRecords  *int64
	LagSeconds  *float64
	RecordTime  *time.Time
	ReadRate    *float64
	ProduceRate *float64
	Verdict     job.Verdict
	Reason      reason.Reason
	Deadline    *time.Time
	Since       time.Time
}

// Status returns one job with all its versions, newest first.
func (s *Store) Status(ctx context.Context, name job.Name) (Job, error) {
	all, err := s.jobs(ctx, string(name))
	if err != nil {
		return Job{}, err
	}
	if len(all) == 0 {
		return Job{}, ledger.UnknownJob(ctx, s.pool, name)
	}
	return all[0], nil
}

// Jobs returns all jobs by name, each with the versions that have not ended.
func (s *Store) Jobs(ctx context.Context) ([]Job, error) {
	return s.jobs(ctx, "")
}

// jobs reads one job with all its versions, or all jobs with those that have not ended, in one snapshot.
func (s *Store) jobs(ctx context.Context, name string) ([]Job, error) {
	out := []Job{}
	err := s.pool.Snapshot(ctx, func(tx *pg.Tx) error {
		found, err := readRows(ctx, tx, name)
		if err != nil {
			return err
		}
		for _, one := range found.byJob() {
			h := one.jobs[0]
			j, err := one.job(h)
			if err == nil && name != "" {
				err = s.detail(ctx, tx, h, one.versions, &j)
			}
			if err != nil {
				return err
			}
			out = append(out, j)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	return out, nil
}

// detail adds to a single job what is not read for all jobs: the durations of its versions' steps, and warnings of the
// database.
func (s *Store) detail(ctx context.Context, tx *pg.Tx, h jobRow, versions []versionRow, j *Job) (err error) {
	if err := withTimings(ctx, tx, versions, j.Versions); err != nil {
		return err
	}
	if j.WarningReasons, err = s.warnings(ctx, tx, h.JobRow, versions); err != nil {
		return err
	}
	j.Warnings, j.WarningCodes = reason.Texts(j.WarningReasons), reason.CodesOf(j.WarningReasons)
	return nil
}

// jobRow is a row of kappactl.job, with the database's clock.
type jobRow struct {
	ledger.JobRow
	Team string
	Now  time.Time
}

// deploymentRow is a deployment that has not ended.
type deploymentRow struct {
	Job string
	Deployment
	Number        int
	MessageReason reason.Reason
	Live          *int
	Outdated      bool // its promote would be refused: the live version has changed since stage
}

// rows holds all rows of one job, or of all jobs.
type rows struct {
	jobs        []jobRow
	versions    []versionRow
	parts       []observationRow
	checks      []checkRow
	gaps        []gapRow
	deployments []deploymentRow
}

func readRows(ctx context.Context, tx *pg.Tx, name string) (r rows, err error) {
	args := pgx.NamedArgs{"job": name}
	if r.jobs, err = pg.Structs[jobRow](ctx, tx, `SELECT `+ledger.JobColumns+
		`, team, clock_timestamp() AS now FROM kappactl.job
		WHERE @job::text = '' OR name = @job ORDER BY name`, args); err != nil {
		return r, err
	}
	if r.versions, err = pg.Structs[versionRow](ctx, tx, versionSQL, args); err != nil {
		return r, err
	}
	if r.parts, err = pg.Structs[observationRow](ctx, tx,
		`SELECT job, number, topic, partition, sampled_at, log_start, last_stable,
			end_offset, position, lag_records, lag_seconds, record_time, read_rate, produce_rate, verdict, reason, deadline,
			since
		FROM kappactl.observation WHERE @job::text = '' OR job = @job ORDER BY job, number, topic, partition`,
		args); err != nil {
		return r, err
	}
	if r.checks, err = readChecks(ctx, tx, name); err != nil {
		return r, err
	}
	if r.gaps, err = readGaps(ctx, tx, name); err != nil {
		return r, err
	}
	r.deployments, err = pg.Structs[deploymentRow](ctx, tx,
		`SELECT d.job, d.id AS deployment, '' AS version, d.number, d.state,
			d.message AS message_reason, d.next_command AS next, d.exit_code, d.observe_until, j.live, `+ledger.OutdatedColumn+`
		FROM kappactl.deployment d JOIN kappactl.version v USING (job, number) JOIN kappactl.job j ON j.name = d.job
		WHERE (@job::text = '' OR d.job = @job) AND d.ended_at IS NULL ORDER BY d.job, d.id DESC`, args)
	return r, err
}

const versionSQL = `SELECT job, number, hash, phase, phase_since, paused_at, pinned_at, verdict, reason, standby_until,
		rolled_back_at, stale_since, exit_code, error, git_revision, created_by, created_at, ended_at, warnings,
		coalesce((layout ->> 'lambda')::boolean, false) AS lambda,
		coalesce(p.records, 0)::bigint + coalesce(g.records, 0)::bigint AS records,
		CASE WHEN v.ended_at IS NULL THEN coalesce(p.dead_letters, 0)::bigint + coalesce(g.dead_letters, 0)::bigint
		ELSE d.dead_letters END AS dead_letters,
		EXISTS (SELECT FROM kappactl.position f WHERE f.job = v.job AND f.number = v.number
		AND f.fault IN ('gap', 'recreated')) AS incomplete
	FROM kappactl.version v
	LEFT JOIN LATERAL (SELECT sum(records) AS records, sum(dead_letters) AS dead_letters FROM kappactl.position p
		WHERE p.job = v.job AND p.number = v.number) p ON true
	LEFT JOIN LATERAL (SELECT sum(records) AS records, sum(dead_letters) AS dead_letters FROM kappactl.segment g
		WHERE g.job = v.job AND g.number = v.number AND g.state = 'done' AND v.phase IN ('replaying', 'building')) g ON true
	LEFT JOIN LATERAL (SELECT count(*) AS dead_letters FROM kappactl.dead_letter l
		WHERE v.ended_at IS NOT NULL AND l.job = v.job AND l.number = v.number) d ON true -- its positions are gone
	WHERE job = @job OR (@job::text = '' AND ended_at IS NULL) ORDER BY job, number DESC`

// byJob returns the rows of each job, in the order of jobs.
func (r rows) byJob() []*rows {
	out := make([]*rows, len(r.jobs))
	of := make(map[string]*rows, len(r.jobs))
	for i, h := range r.jobs {
		out[i] = &rows{jobs: r.jobs[i : i+1]}
		of[h.Name] = out[i]
	}
	share(of, r.versions, func(v versionRow) string { return v.Job }, func(o *rows) *[]versionRow { return &o.versions })
	share(of, r.parts, func(p observationRow) string { return p.Job },
		func(o *rows) *[]observationRow { return &o.parts })
	share(of, r.checks, func(c checkRow) string { return c.Job }, func(o *rows) *[]checkRow { return &o.checks })
	share(of, r.gaps, func(g gapRow) string { return g.Job }, func(o *rows) *[]gapRow { return &o.gaps })
	share(of, r.deployments, func(d deploymentRow) string { return d.Job },
		func(o *rows) *[]deploymentRow { return &o.deployments })
	return out
}

// share appends each row to the rows of its job; rows of a job that did not exist yet are left out.
func share[T any](of map[string]*rows, all []T, name func(T) string, to func(*rows) *[]T) {
	for _, row := range all {
		if one, ok := of[name(row)]; ok {
			list := to(one)
			*list = append(*list, row)
		}
	}
}

// job returns a job with its versions and its open deployments; r holds its rows.
func (r rows) job(h jobRow) (Job, error) {
	j := Job{
		Job: job.Name(h.Name), Team: h.Team, View: h.View().String(), ViewName: h.View(),
		Versions: []Version{}, Deployments: []Deployment{}, Warnings: []string{}, WarningCodes: []reason.Code{},
	}
	if h.Live != nil {
		live := job.Number(*h.Live).String()
		j.Live = &live
	}
	for _, v := range r.versions {
		shown := v.status(ofVersion(r.parts, v.Job, v.Number), h.Now)
		var err error
		if shown.Checks, err = checksOf(r.checks, v.Job, v.Number); err != nil {
			return j, err
		}
		shown.Gaps = gapsOf(r.gaps, v.Job, v.Number)
		j.Versions = append(j.Versions, shown)
	}
	for _, d := range r.deployments {
		d.Version = job.Number(d.Number).String()
		if d.Outdated {
			a := ledger.LiveChanged(job.Ref{Job: job.Name(d.Job), Number: job.Number(d.Number)}, d.Live)
			code := int(a.Code)
			d.ExitCode, d.MessageReason, d.Next = &code, a.Reason, a.Next
		}
		d.Message, d.MessageCode = d.MessageReason.Text(), d.MessageReason.Code
		j.Deployments = append(j.Deployments, d.Deployment)
	}
	return j, nil
}

// withTimings adds the durations of steps to the versions of one job.
func withTimings(ctx context.Context, tx *pg.Tx, rows []versionRow, versions []Version) error {
	for i, r := range rows {
		t, err := ledger.ReadTimings(ctx, tx, r.Job, r.Number)
		if err != nil {
			return err
		}
		versions[i].Timings = &t
	}
	return nil
}

func ofVersion(all []observationRow, name string, number int) []observationRow {
	var out []observationRow
	for _, o := range all {
		if o.Job == name && o.Number == number {
			out = append(out, o)
		}
	}
	return out
}
