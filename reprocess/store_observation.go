package reprocess

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// observed is one partition as it goes into kappactl.observation; null means unknown.
type observed struct {
	TopicID     string      `json:"topic_id"`
	Topic       string      `json:"topic"`
	Partition   int32       `json:"partition"`
	LogStart    *int64      `json:"log_start"`
	LastStable  *int64      `json:"last_stable"`
	End         *int64      `json:"end_offset"`
	Position    int64       `json:"position"`
	Lag         *int64      `json:"lag_records"`
	LagSeconds  *float64    `json:"lag_seconds"`
	RecordTime  *time.Time  `json:"record_time"`
	ReadRate    *float64    `json:"read_rate"`
	ProduceRate *float64    `json:"produce_rate"`
	Verdict     job.Verdict `json:"verdict"`
	Reason      string      `json:"reason"`
	Deadline    *time.Time  `json:"deadline"`

	partition job.Partition
}

// writeObservations replaces the samples of a version, fenced by the deployment's claim.
func writeObservations(ctx context.Context, db pg.DB, st *state, rows []observed) error {
	if len(rows) == 0 {
		return nil
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("encode samples of %s: %w", st.ref(), err)
	}
	_, err = db.Exec(ctx, `INSERT INTO kappactl.observation AS o (job, number, topic_id, topic, partition, sampled_at, log_start, last_stable,
			end_offset, position, lag_records, lag_seconds, record_time, read_rate, produce_rate, verdict, reason, deadline, since)
		SELECT @job, @number, r.topic_id, r.topic, r.partition, clock_timestamp(), r.log_start, r.last_stable, r.end_offset, r.position,
			r.lag_records, r.lag_seconds, r.record_time, r.read_rate, r.produce_rate, r.verdict, r.reason, r.deadline, clock_timestamp()
		FROM jsonb_to_recordset(@rows::jsonb) AS r (topic_id uuid, topic text, partition integer, log_start bigint, last_stable bigint,
			end_offset bigint, position bigint, lag_records bigint, lag_seconds double precision, record_time timestamptz,
			read_rate double precision, produce_rate double precision, verdict text, reason text, deadline timestamptz)
		WHERE EXISTS (SELECT 1 FROM kappactl.deployment WHERE id = @id AND claim = @claim)
		ON CONFLICT (job, number, topic_id, partition) DO UPDATE SET topic = excluded.topic, sampled_at = excluded.sampled_at,
			log_start = excluded.log_start, last_stable = excluded.last_stable, end_offset = excluded.end_offset,
			position = excluded.position, lag_records = excluded.lag_records, lag_seconds = excluded.lag_seconds,
			record_time = excluded.record_time, read_rate = excluded.read_rate, produce_rate = excluded.produce_rate,
			verdict = excluded.verdict, reason = excluded.reason, deadline = excluded.deadline,
			since = CASE WHEN o.verdict = excluded.verdict THEN o.since ELSE excluded.since END`,
		pgx.NamedArgs{"job": st.Job, "number": st.Number, "rows": string(text), "id": st.ID, "claim": st.claim})
	if err != nil {
		return fmt.Errorf("write samples of %s: %w", st.ref(), err)
	}
	return nil
}

// setVerdict notes the verdict on a version. stale says that a version that was live can no longer be gone back to
// without losing something; a candidate is never stale.
func setVerdict(ctx context.Context, db pg.DB, st *state, j Judged, stale bool) error {
	_, err := db.Exec(ctx, `UPDATE kappactl.version v SET verdict = @verdict, reason = @reason,
			verdict_since = CASE WHEN v.verdict = @verdict THEN v.verdict_since ELSE clock_timestamp() END,
			stale_since = CASE WHEN NOT @stale::boolean THEN NULL ELSE coalesce(v.stale_since, clock_timestamp()) END
		FROM kappactl.deployment d
		WHERE v.job = @job AND v.number = @number AND v.phase = @phase AND d.id = @id AND d.claim = @claim
		  AND (v.verdict <> @verdict OR v.reason <> @reason OR @stale::boolean <> (v.stale_since IS NOT NULL))`,
		pgx.NamedArgs{
			"job": st.Job, "number": st.Number, "phase": string(st.Phase), "verdict": string(j.Verdict), "reason": j.Reason, "stale": stale,
			"id": st.ID, "claim": st.claim,
		})
	if err != nil {
		return fmt.Errorf("write verdict of %s: %w", st.ref(), err)
	}
	return nil
}

// seedRow is what an earlier controller saw last of a partition.
type seedRow struct {
	TopicID    string
	Topic      string
	Partition  int32
	Age        float64 // seconds since it was sampled
	Position   *int64
	EndOffset  *int64
	LagSeconds *float64
}

func readSeeds(ctx context.Context, db pg.DB, st *state) ([]seedRow, error) {
	rows, err := collect[seedRow](ctx, db, `SELECT topic_id::text AS topic_id, topic, partition,
			extract(epoch FROM clock_timestamp() - sampled_at)::double precision AS age, position, end_offset, lag_seconds
		FROM kappactl.observation WHERE job = @job AND number = @number`, pgx.NamedArgs{"job": st.Job, "number": st.Number})
	if err != nil {
		return nil, fmt.Errorf("read samples of %s: %w", st.ref(), err)
	}
	return rows, nil
}

// freshVerdict reads the verdict on a version, as far as its samples are younger than staleAfter.
func freshVerdict(ctx context.Context, db pg.DB, ref job.Ref) (Judged, error) {
	var j Judged
	var fresh bool
	err := db.QueryRow(ctx, `SELECT verdict, reason,
			coalesce((SELECT min(sampled_at) FROM kappactl.observation o WHERE o.job = v.job AND o.number = v.number)
				> clock_timestamp() - @age::interval, false)
		FROM kappactl.version v WHERE job = @job AND number = @number`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number), "age": pg.Interval(staleAfter)}).Scan(&j.Verdict, &j.Reason, &fresh)
	if err != nil {
		return j, fmt.Errorf("read verdict of %s: %w", ref, err)
	}
	if !fresh {
		return Judged{job.Unknown, "the last sample is older than 5s"}, nil
	}
	return j, nil
}
