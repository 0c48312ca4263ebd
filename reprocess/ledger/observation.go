package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// Samples are what is to be written of a version.
type Samples struct {
	State *State
	Rows  []readiness.Observation
}

// sampleRow is a sample with the version and the claim under which it is written.
type sampleRow struct {
	Job        string `json:"job"`
	Number     int    `json:"number"`
	Deployment int64  `json:"deployment"`
	Claim      int64  `json:"claim"`
	readiness.Observation
}

// WriteObservations replaces samples of versions in one statement, those of each version fenced by its deployment's
// claim.
func WriteObservations(ctx context.Context, db pg.DB, of ...Samples) error {
	var rows []sampleRow
	for _, s := range of {
		for _, o := range s.Rows {
			rows = append(rows, sampleRow{s.State.Job, s.State.Number, s.State.ID, s.State.Claim, o})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("encode samples of %s: %w", of[0].State.Ref(), err)
	}
	_, err = db.Exec(ctx, `INSERT INTO kappactl.observation AS o (job, number, topic_id, topic, partition, sampled_at, log_start, last_stable,
			end_offset, position, lag_records, lag_seconds, record_time, read_rate, produce_rate, verdict, reason, deadline, since)
		SELECT r.job, r.number, r.topic_id, r.topic, r.partition, clock_timestamp(), r.log_start, r.last_stable, r.end_offset, r.position,
			r.lag_records, r.lag_seconds, r.record_time, r.read_rate, r.produce_rate, r.verdict, r.reason, r.deadline, clock_timestamp()
		FROM jsonb_to_recordset(@rows::jsonb) AS r (job text, number integer, deployment bigint, claim bigint, topic_id uuid, topic text,
			partition integer, log_start bigint, last_stable bigint, end_offset bigint, position bigint, lag_records bigint,
			lag_seconds double precision, record_time timestamptz, read_rate double precision, produce_rate double precision, verdict text,
			reason jsonb, deadline timestamptz)
		WHERE EXISTS (SELECT 1 FROM kappactl.deployment d WHERE d.id = r.deployment AND d.claim = r.claim)
		ORDER BY r.job, r.number, r.topic_id, r.partition
		ON CONFLICT (job, number, topic_id, partition) DO UPDATE SET topic = excluded.topic, sampled_at = excluded.sampled_at,
			log_start = excluded.log_start, last_stable = excluded.last_stable, end_offset = excluded.end_offset,
			position = excluded.position, lag_records = excluded.lag_records, lag_seconds = excluded.lag_seconds,
			record_time = excluded.record_time, read_rate = excluded.read_rate, produce_rate = excluded.produce_rate,
			verdict = excluded.verdict, reason = excluded.reason, deadline = excluded.deadline,
			since = CASE WHEN o.verdict = excluded.verdict THEN o.since ELSE excluded.since END`,
		pgx.NamedArgs{"rows": string(text)})
	if err != nil {
		return fmt.Errorf("write samples of %s: %w", of[0].State.Ref(), err)
	}
	return nil
}

// KeepObservations notes that the stored samples of versions were taken again and are the same, each fenced by its
// deployment's claim, and returns of how many partitions each has some. Rows that somebody has locked are about to be
// replaced or deleted, and are passed over.
func KeepObservations(ctx context.Context, db pg.DB, of []*State) ([]int, error) {
	ids, claims := make([]int64, len(of)), make([]int64, len(of))
	for i, st := range of {
		ids[i], claims[i] = st.ID, st.Claim
	}
	type row struct {
		Job    string
		Number int
		Kept   int
	}
	rows, err := pg.Structs[row](ctx, db, `WITH kept AS (UPDATE kappactl.observation SET sampled_at = clock_timestamp()
		WHERE ctid = ANY (ARRAY(SELECT o.ctid FROM unnest(@ids::bigint[], @claims::bigint[]) AS a (id, claim)
			JOIN kappactl.deployment d ON d.id = a.id AND d.claim = a.claim
			JOIN kappactl.observation o ON o.job = d.job AND o.number = d.number FOR NO KEY UPDATE OF o SKIP LOCKED)) RETURNING job, number)
		SELECT job, number, count(*) AS kept FROM kept GROUP BY job, number`,
		pgx.NamedArgs{"ids": ids, "claims": claims})
	if err != nil {
		return nil, fmt.Errorf("keep the samples of %d versions: %w", len(of), err)
	}
	found := make(map[job.Ref]int, len(rows))
	for _, r := range rows {
		found[job.Ref{Job: job.Name(r.Job), Number: job.Number(r.Number)}] = r.Kept
	}
	out := make([]int, len(of))
	for i, st := range of {
		out[i] = found[st.Ref()]
	}
	return out, nil
}

// SetVerdict notes the verdict on a version. stale: a version that was live can no longer be gone back to
// without losing something; a candidate is never stale.
func SetVerdict(ctx context.Context, db pg.DB, st *State, j readiness.Judgement, stale bool) error {
	_, err := db.Exec(ctx, `UPDATE kappactl.version v SET verdict = @verdict, reason = @reason::jsonb,
			verdict_since = CASE WHEN v.verdict = @verdict THEN v.verdict_since ELSE clock_timestamp() END,
			stale_since = CASE WHEN NOT @stale::boolean THEN NULL ELSE coalesce(v.stale_since, clock_timestamp()) END
		FROM kappactl.deployment d
		WHERE v.job = @job AND v.number = @number AND v.phase = @phase AND d.id = @id AND d.claim = @claim
		  AND (v.verdict <> @verdict OR v.reason <> @reason::jsonb OR @stale::boolean <> (v.stale_since IS NOT NULL))`,
		pgx.NamedArgs{
			"job": st.Job, "number": st.Number, "phase": string(st.Phase), "verdict": string(j.Verdict), "reason": j.Reason,
			"stale": stale,
			"id":    st.ID, "claim": st.Claim,
		})
	if err != nil {
		return fmt.Errorf("write verdict of %s: %w", st.Ref(), err)
	}
	return nil
}

// SeedRow is the last observation of a partition by an earlier controller.
type SeedRow struct {
	TopicID    string
	Topic      string
	Partition  int32
	Age        float64 // seconds since it was sampled
	Position   *int64
	EndOffset  *int64
	LagSeconds *float64
}

// ReadSeeds are the last observations of a version, with which a new controller begins.
func ReadSeeds(ctx context.Context, db pg.DB, st *State) ([]SeedRow, error) {
	rows, err := pg.Structs[SeedRow](ctx, db, `SELECT topic_id::text AS topic_id, topic, partition,
			extract(epoch FROM clock_timestamp() - sampled_at)::double precision AS age, position, end_offset, lag_seconds
		FROM kappactl.observation WHERE job = @job AND number = @number`, pgx.NamedArgs{"job": st.Job, "number": st.Number})
	if err != nil {
		return nil, fmt.Errorf("read samples of %s: %w", st.Ref(), err)
	}
	return rows, nil
}

// LastVerdict is the verdict on a version as it was noted last.
type LastVerdict struct {
	readiness.Judgement
	Fresh bool // all samples are younger than the age asked for
}

// ReadVerdict reads the verdict on a version; it is fresh while the version's samples are younger than age.
func ReadVerdict(ctx context.Context, db pg.DB, ref job.Ref, age time.Duration) (LastVerdict, error) {
	var v LastVerdict
	err := db.QueryRow(ctx, `SELECT verdict, reason,
			coalesce((SELECT min(sampled_at) FROM kappactl.observation o WHERE o.job = v.job AND o.number = v.number)
				> clock_timestamp() - @age::interval, false)
		FROM kappactl.version v WHERE job = @job AND number = @number`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number), "age": pg.Interval(age)}).Scan(&v.Verdict,
		&v.Reason, &v.Fresh)
	return v, Wrap(err, "read verdict of %s", ref)
}

// FreshVerdict is the verdict on a version; unknown when its samples are older than readiness.StaleAfter.
func FreshVerdict(ctx context.Context, db pg.DB, ref job.Ref) (readiness.Judgement, error) {
	v, err := ReadVerdict(ctx, db, ref, readiness.StaleAfter)
	if err == nil && !v.Fresh {
		return readiness.Judgement{Verdict: job.Unknown, Reason: reason.SampleOld(readiness.StaleAfter)}, nil
	}
	return v.Judgement, err
}

// Behind is how far a version is behind the ends of its partitions, by its last samples.
type Behind struct {
	Records *int64   // nil: a partition of it is unknown
	Seconds *float64 // of the partition that is furthest behind
	Age     *float64 // seconds since the oldest of the samples; nil when there is none
}

// ReadBehind reads how far a version is behind.
func ReadBehind(ctx context.Context, db pg.DB, ref job.Ref) (Behind, error) {
	found, err := pg.Structs[Behind](ctx, db, `SELECT CASE WHEN bool_and(lag_records IS NOT NULL) THEN sum(lag_records)::bigint END AS records,
			CASE WHEN bool_and(lag_seconds IS NOT NULL) THEN max(lag_seconds) END AS seconds,
			extract(epoch FROM clock_timestamp() - min(sampled_at))::double precision AS age
		FROM kappactl.observation WHERE job = @job AND number = @number`, pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)})
	if err != nil {
		return Behind{}, fmt.Errorf("read how far %s is: %w", ref, err)
	}
	return found[0], nil
}
