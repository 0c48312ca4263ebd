package reprocess

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// behind is how far a version is behind the ends of its partitions, by its last samples.
type behind struct {
	Records *int64   // nil: a partition of it is unknown
	Seconds *float64 // of the partition that is furthest behind
	Age     *float64 // seconds since the oldest of the samples; nil when there is none
}

func (b behind) String() string {
	switch {
	case b.Age == nil:
		return "behind by what is not known: it was never sampled"
	case b.Records == nil || b.Seconds == nil:
		return "behind by what is not known: the brokers do not say where the log ends"
	}
	text := fmt.Sprintf("%s records, %s behind", grouped(*b.Records), seconds(*b.Seconds))
	if *b.Age > staleAfter.Seconds() {
		text += fmt.Sprintf(", as of %s ago", seconds(*b.Age))
	}
	return text
}

// moves says that a version seems to follow, so that a barrier over it can be reached.
func (b behind) moves(st *state) bool {
	return b.Age != nil && *b.Age <= staleAfter.Seconds() && st.StaleSince == nil && st.PausedAt == nil && st.Verdict != job.Stalled
}

func seconds(s float64) string { return words(time.Duration(s * float64(time.Second))) }

func readBehind(ctx context.Context, db pg.DB, ref job.Ref) (behind, error) {
	found, err := collect[behind](ctx, db, `SELECT CASE WHEN bool_and(lag_records IS NOT NULL) THEN sum(lag_records)::bigint END AS records,
			CASE WHEN bool_and(lag_seconds IS NOT NULL) THEN max(lag_seconds) END AS seconds,
			extract(epoch FROM clock_timestamp() - min(sampled_at))::double precision AS age
		FROM kappactl.observation WHERE job = @job AND number = @number`, pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)})
	if err != nil {
		return behind{}, fmt.Errorf("read how far %s is: %w", ref, err)
	}
	return found[0], nil
}
