package reprocess

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

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
	Reason       string
	StandbyUntil *time.Time
	RolledBackAt *time.Time
	StaleSince   *time.Time
	ExitCode     *int
	Error        string
	GitRevision  string
	CreatedBy    string
	CreatedAt    time.Time
	EndedAt      *time.Time
	Records      int64
	DeadLetters  int64
	Incomplete   bool
	Warnings     string
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
	Reason      string
	Deadline    *time.Time
	Since       time.Time
}

// Status is one job with all its versions, newest first.
func (s *Store) Status(ctx context.Context, name job.Name) (Status, error) {
	all, err := s.statuses(ctx, string(name))
	if err != nil {
		return Status{}, err
	}
	if len(all) == 0 {
		return Status{}, unknownJob(ctx, s.pool, name)
	}
	return all[0], nil
}

// Jobs is every job by name, each with the versions that have not ended.
func (s *Store) Jobs(ctx context.Context) ([]Status, error) {
	return s.statuses(ctx, "")
}

// statuses reads one job with all its versions, or all jobs with those that have not ended, at one moment.
func (s *Store) statuses(ctx context.Context, name string) ([]Status, error) {
	var out []Status
	err := s.pool.Snapshot(ctx, func(tx *pg.Tx) error {
		var err error
		out, err = s.readStatuses(ctx, tx, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	return out, nil
}

func (s *Store) readStatuses(ctx context.Context, tx *pg.Tx, name string) ([]Status, error) {
	args := pgx.NamedArgs{"job": name}
	type head struct {
		jobRow
		Team string
		Now  time.Time
	}
	heads, err := collect[head](ctx, tx, `SELECT `+jobColumns+`, team, clock_timestamp() AS now FROM kappactl.job
		WHERE @job::text = '' OR name = @job ORDER BY name`, args)
	if err != nil {
		return nil, err
	}
	versions, err := collect[versionRow](ctx, tx, `SELECT job, number, hash, phase, phase_since, paused_at, pinned_at, verdict, reason, standby_until,
			rolled_back_at, stale_since, exit_code, error, git_revision, created_by, created_at, ended_at, warnings::text AS warnings,
			coalesce(p.records, 0)::bigint + coalesce(g.records, 0)::bigint AS records,
			d.dead_letters,
			EXISTS (SELECT FROM kappactl.position f WHERE f.job = v.job AND f.number = v.number AND f.fault IN ('gap', 'recreated')) AS incomplete
		FROM kappactl.version v
		LEFT JOIN LATERAL (SELECT sum(records) AS records FROM kappactl.position p
			WHERE p.job = v.job AND p.number = v.number) p ON true
		LEFT JOIN LATERAL (SELECT sum(records) AS records FROM kappactl.segment g
			WHERE g.job = v.job AND g.number = v.number AND g.state = 'done' AND v.phase IN ('replaying', 'building')) g ON true
		LEFT JOIN LATERAL (SELECT count(*) AS dead_letters FROM kappactl.dead_letter l
			WHERE l.job = v.job AND l.number = v.number) d ON true
		WHERE job = @job OR (@job::text = '' AND ended_at IS NULL) ORDER BY job, number DESC`, args)
	if err != nil {
		return nil, err
	}
	parts, err := collect[observationRow](ctx, tx, `SELECT job, number, topic, partition, sampled_at, log_start, last_stable, end_offset, position,
			lag_records, lag_seconds, record_time, read_rate, produce_rate, verdict, reason, deadline, since
		FROM kappactl.observation WHERE @job::text = '' OR job = @job ORDER BY job, number, topic, partition`, args)
	if err != nil {
		return nil, err
	}
	checks, err := readCheckStatuses(ctx, tx, name)
	if err != nil {
		return nil, err
	}
	type open struct {
		Job string
		DeploymentStatus
		Number int
	}
	deployments, err := collect[open](ctx, tx, `SELECT job, id AS deployment, '' AS version, number, state, message, next_command AS next,
			exit_code, observe_until
		FROM kappactl.deployment WHERE (@job::text = '' OR job = @job) AND ended_at IS NULL ORDER BY job, id DESC`, args)
	if err != nil {
		return nil, err
	}
	out := make([]Status, 0, len(heads))
	for _, h := range heads {
		st := Status{
			Job: job.Name(h.Name), Team: h.Team, View: h.view().String(), ViewName: h.view(),
			Versions: []VersionStatus{}, Deployments: []DeploymentStatus{}, Warnings: []string{},
		}
		if h.Live != nil {
			live := job.Number(*h.Live).String()
			st.Live = &live
		}
		for _, v := range versions {
			if v.Job == h.Name {
				shown := v.status(ofVersion(parts, v.Job, v.Number), h.Now)
				if shown.Checks, err = checksOf(checks, v.Job, v.Number); err != nil {
					return nil, err
				}
				st.Versions = append(st.Versions, shown)
			}
		}
		if name != "" {
			if err := withTimings(ctx, tx, versions, st.Versions); err != nil {
				return nil, err
			}
			if st.Warnings, err = s.warnings(ctx, tx, h.jobRow, versions); err != nil {
				return nil, err
			}
		}
		for _, d := range deployments {
			if d.Job == h.Name {
				d.Version = job.Number(d.Number).String()
				st.Deployments = append(st.Deployments, d.DeploymentStatus)
			}
		}
		out = append(out, st)
	}
	return out, nil
}

// withTimings adds to the versions of one job where their time went.
func withTimings(ctx context.Context, tx *pg.Tx, rows []versionRow, versions []VersionStatus) error {
	for i, r := range rows {
		t, err := readTimings(ctx, tx, r.Job, r.Number)
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

func collect[T any](ctx context.Context, db pg.DB, sql string, args pgx.NamedArgs) ([]T, error) {
	rows, err := db.Query(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
}
