package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
)

const selectVersion = `SELECT v.phase, v.dialect, v.built_xid IS NOT NULL AS built,
	v.spec::text AS spec, v.layout::text AS layout, j.view_schema
	FROM kappactl.version v JOIN kappactl.job j ON j.name = v.job
	WHERE v.job = @job AND v.number = @number`

const selectPositions = `SELECT topic_id::text AS topic_id, topic, partition, covers_from, next, leader_epoch
	FROM kappactl.position WHERE job = @job AND number = @number ORDER BY topic, topic_id, partition`

// selectGaps lists what the results do not hold: accepted gaps and, of mode lambda, below the cut of the live
// generation what that one could not read. It may have read a gap that was accepted, from the archive.
const selectGaps = `WITH cut AS (
		SELECT r.topic_id, r.partition, r.to_offset, r.unread FROM kappactl.generation_range r JOIN kappactl.generation g USING (job, number, generation)
		WHERE r.job = @job AND r.number = @number AND g.state = 'live'
	)
	SELECT topic_id::text AS topic_id, partition, from_offset, to_offset, counted FROM (
		SELECT a.topic_id, a.partition, greatest(a.from_offset, c.to_offset) AS from_offset, a.to_offset, a.counted
		FROM kappactl.accepted_gap a LEFT JOIN cut c USING (topic_id, partition)
		WHERE a.job = @job AND a.number = @number AND (c.to_offset IS NULL OR a.to_offset > c.to_offset)
		UNION ALL
		SELECT c.topic_id, c.partition, lower(u), upper(u), false FROM cut c, unnest(c.unread) AS u
	) gaps ORDER BY topic_id, partition, from_offset`

const selectDeadLetters = `SELECT d.topic_id::text AS topic_id, d.partition, d."offset"
	FROM kappactl.dead_letter d JOIN kappactl.position p USING (job, number, topic_id, partition)
	WHERE d.job = @job AND d.number = @number AND d."offset" >= p.covers_from AND d."offset" < p.next
	ORDER BY d.topic_id, d.partition, d."offset"`

// version is the version to verify.
type version struct {
	job.Version
	spec job.Spec
}

type versionRow struct {
	Phase      string
	Dialect    int
	Built      bool
	Spec       string
	Layout     string
	ViewSchema string
}

// loadVersion reads the version and refuses one that has nothing to compare.
func loadVersion(ctx context.Context, db pg.DB, ref job.Ref) (*version, error) {
	rows, err := db.Query(ctx, selectVersion, named(ref))
	if err != nil {
		return nil, fmt.Errorf("read version %s: %w", ref, err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[versionRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, &job.Refusal{
			Code: job.ExitUsage, Cause: fmt.Sprintf("there is no version %s", ref), Next: "kappactl status " + string(ref.Job),
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read version %s: %w", ref, err)
	}
	if err := comparable(ref, r); err != nil {
		return nil, err
	}
	v := &version{Version: job.Version{Ref: ref, Schema: r.ViewSchema}}
	if err := json.Unmarshal([]byte(r.Spec), &v.spec); err != nil {
		return nil, fmt.Errorf("read the job file of %s: %w", ref, err)
	}
	if err := json.Unmarshal([]byte(r.Layout), &v.Layout); err != nil {
		return nil, fmt.Errorf("read the layout of %s: %w", ref, err)
	}
	return v, nil
}

func comparable(ref job.Ref, r versionRow) error {
	phase := job.Phase(r.Phase)
	switch {
	case phase == job.Retiring || phase == job.Retired:
		return &job.Refusal{
			Code: job.ExitConflict, Cause: fmt.Sprintf("%s is %s: its table was dropped", ref, phase),
			Next: "kappactl status " + string(ref.Job),
		}
	case phase.Ended() && !r.Built:
		return &job.Refusal{
			Code: job.ExitConflict, Cause: fmt.Sprintf("%s is %s: it never had a table to compare", ref, phase),
			Next: "kappactl status " + string(ref.Job),
		}
	case phase == job.Staged || phase == job.Replaying || phase == job.Building:
		return &job.Refusal{
			Code:  job.ExitNotCaughtUp,
			Cause: fmt.Sprintf("%s is %s: there is nothing to compare before its table is built", ref, phase),
			Next:  fmt.Sprintf("kappactl wait %s %s --for caught_up", ref.Job, ref.Number),
		}
	case r.Dialect != query.Dialect:
		return &job.Refusal{
			Code:  job.ExitConflict,
			Cause: fmt.Sprintf("%s was staged with SQL dialect %d and this binary has %d", ref, r.Dialect, query.Dialect),
			Next:  "verify with the release that its agents run",
		}
	}
	return nil
}

func named(ref job.Ref) pgx.NamedArgs {
	return pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)}
}

type positionRow struct {
	TopicID     string `db:"topic_id"`
	Topic       string
	Partition   int32
	CoversFrom  int64
	Next        int64
	LeaderEpoch int32
}

type gapRow struct {
	TopicID              string `db:"topic_id"`
	Partition            int32
	FromOffset, ToOffset int64
	Counted              bool
}

type deadRow struct {
	TopicID   string `db:"topic_id"`
	Partition int32
	Offset    int64
}

// place identifies a partition of one topic id.
type place struct {
	topic job.TopicID
	id    int32
}

// readSpans reads what the version covers, with its gaps and dead letters.
func readSpans(ctx context.Context, db pg.DB, ref job.Ref) ([]*span, error) {
	positions, err := list[positionRow](ctx, db, selectPositions, ref)
	if err != nil {
		return nil, fmt.Errorf("read positions of %s: %w", ref, err)
	}
	gaps, err := list[gapRow](ctx, db, selectGaps, ref)
	if err != nil {
		return nil, fmt.Errorf("read accepted gaps of %s: %w", ref, err)
	}
	dead, err := list[deadRow](ctx, db, selectDeadLetters, ref)
	if err != nil {
		return nil, fmt.Errorf("read dead letters of %s: %w", ref, err)
	}
	var spans []*span
	at := map[place]*span{}
	for _, p := range positions {
		id, err := job.ParseTopicID(p.TopicID)
		if err != nil {
			return nil, fmt.Errorf("read positions of %s: %w", ref, err)
		}
		s := &span{
			Partition: job.Partition{Topic: p.Topic, TopicID: id, ID: p.Partition},
			Range:     job.Range{From: p.CoversFrom, To: p.Next}, epoch: p.LeaderEpoch,
		}
		spans, at[s.place()] = append(spans, s), s
	}
	for _, g := range gaps {
		if s, err := find(at, g.TopicID, g.Partition); err != nil {
			return nil, fmt.Errorf("read accepted gaps of %s: %w", ref, err)
		} else if s != nil {
			s.gaps = append(s.gaps, job.Range{From: g.FromOffset, To: g.ToOffset})
			if g.Counted {
				s.counted = append(s.counted, job.Range{From: g.FromOffset, To: g.ToOffset})
			}
		}
	}
	for _, d := range dead {
		if s, err := find(at, d.TopicID, d.Partition); err != nil {
			return nil, fmt.Errorf("read dead letters of %s: %w", ref, err)
		} else if s != nil {
			s.stored = append(s.stored, d.Offset)
		}
	}
	return spans, nil
}

func find(at map[place]*span, topicID string, partition int32) (*span, error) {
	id, err := job.ParseTopicID(topicID)
	return at[place{id, partition}], err
}

func list[T any](ctx context.Context, db pg.DB, sql string, ref job.Ref) ([]T, error) {
	rows, err := db.Query(ctx, sql, named(ref))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
}
