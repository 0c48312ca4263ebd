package speedlayer

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

func buildTarget(b job.Build) target { return target{ref: b.Ref, generation: b.Generation} }

// sqlTiles write the parts that are passed over as segments that are done and have no rows, so that segments tile the
// range.
const sqlTiles = `
INSERT INTO kappactl.batch_segment (job, number, generation, topic_id, topic, partition, from_offset, to_offset, leader_epoch,
       state, rows, done_at)
SELECT @job, @number, @generation, f.topic_id, f.topic, f.partition, f.from_offset, f.to_offset, -1, 'done', 0, clock_timestamp()
  FROM unnest(@topic_ids::uuid[], @topics::text[], @partitions::integer[], @froms::bigint[], @tos::bigint[])
       AS f (topic_id, topic, partition, from_offset, to_offset)
 WHERE f.from_offset < f.to_offset`

// BeginBuild cuts the ranges of a generation into segments and makes its staging table. Repeatable until EndBuild.
func (Store) BeginBuild(ctx context.Context, tx *pg.Tx, b job.Build) error {
	t := buildTarget(b)
	var begun bool
	args := pgx.NamedArgs{"schema": b.Schema, "name": t.staging(), "comment": stagingComment(t)}
	if err := tx.QueryRow(ctx, sqlOwnStaging, args).Scan(&begun); err != nil {
		return fmt.Errorf("begin %s: look for its staging table: %w", b.Member(b.Generation), err)
	}
	if begun {
		return nil
	}
	if err := makeStaging(ctx, tx, b.Version, t); err != nil {
		return fmt.Errorf("begin %s: %w", b.Member(b.Generation), err)
	}
	if len(b.Unread) > 0 {
		if _, err := tx.Exec(ctx, sqlTiles, t.frozenArgs(b.Unread)); err != nil {
			return fmt.Errorf("begin %s: pass over what is gone: %w", b.Member(b.Generation), err)
		}
	}
	ranges := without(b.Ranges, b.Unread)
	limit, err := buildSegment(ctx, tx, b, ranges)
	if err != nil {
		return fmt.Errorf("begin %s: %w", b.Member(b.Generation), err)
	}
	for i := range ranges {
		ranges[i].SplitAt = limit
	}
	if err := addSegments(ctx, tx, t, ranges); err != nil {
		return fmt.Errorf("begin %s: %w", b.Member(b.Generation), err)
	}
	return nil
}

// sqlBuiltRows is the number of rows of the largest generation in the batch table, as PostgreSQL estimates it.
const sqlBuiltRows = `
SELECT coalesce(max(m.reltuples), -1)::bigint FROM pg_inherits i JOIN pg_class m ON m.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
  JOIN pg_namespace n ON n.oid = p.relnamespace WHERE n.nspname = @schema AND p.relname = @batch`

// buildSegment is the most offsets of a segment of a generation. Each segment stages up to as many rows as the
// generation has, so where those are few, fewer and larger segments leave less to write and to merge.
func buildSegment(ctx context.Context, tx *pg.Tx, b job.Build, ranges []job.Frozen) (int64, error) {
	var rows, offsets int64
	if err := tx.QueryRow(ctx, sqlBuiltRows, pgx.NamedArgs{
		"schema": b.Schema,
		"batch":  b.Batch(),
	}).Scan(&rows); err != nil {
		return 0, fmt.Errorf("read how many rows the generations have: %w", err)
	}
	for _, r := range ranges {
		offsets += r.Len()
	}
	return segmentFor(rows, offsets, b.Workers), nil
}

// segmentFor leaves two segments for each worker at least.
func segmentFor(rows, offsets int64, workers int) int64 {
	const unknownWorkers, few = 8, 20 // offsets for each row
	limit := min(max(maxSegment, offsets/int64(2*cmp.Or(workers, unknownWorkers))), largeSegment)
	if rows < 0 || rows*few > limit {
		return maxSegment
	}
	return limit
}

// without are the parts of ranges that gone does not cover. gone is sorted by From within a partition.
func without(ranges, gone []job.Frozen) []job.Frozen {
	var out []job.Frozen
	for _, r := range ranges {
		rest := r
		for _, g := range gone {
			if g.Partition != r.Partition || g.To <= rest.From || g.From >= rest.To {
				continue
			}
			before := rest
			if before.To = g.From; before.Len() > 0 {
				out = append(out, before)
			}
			rest.From, rest.LeaderEpoch = g.To, -1
		}
		if rest.Len() > 0 {
			out = append(out, rest)
		}
	}
	return out
}

// FillMember checks that what is staged covers the build's ranges, each offset once, and replaces the content of the
// generation's table, which is not attached yet, by the merge of what is staged and of the base's states. Rows that are
// no longer kept are left out. Repeatable until EndBuild; ErrSealed after it.
func (Store) FillMember(ctx context.Context, pool *pg.Pool, b job.Build) error {
	ranges := make([]rangeRow, 0, len(b.Ranges))
	for _, r := range b.Ranges {
		if r.Len() > 0 {
			ranges = append(ranges, rangeRow{r.TopicID.String(), r.Topic, r.ID, r.From, r.To})
		}
	}
	err := pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		return fill(ctx, tx, b.Version, buildTarget(b), ranges, memberSteps(b))
	})
	if err != nil {
		return fmt.Errorf("fill %s: %w", b.Member(b.Generation), err)
	}
	return nil
}

func memberSteps(b job.Build) []string {
	member, from := pg.Ident(b.Schema, b.Member(b.Generation)), pg.Ident(b.Schema, buildTarget(b).staging())
	columns := stagedColumns(b.Layout)
	list := strings.Join(columns, ", ")
	staged := ""
	if b.Base != nil {
		staged = fmt.Sprintf("WITH staged AS (SELECT %[1]s FROM %[2]s UNION ALL SELECT %[1]s FROM %[3]s)\n",
			list, from, pg.Ident(b.Schema, b.Member(*b.Base)))
		from = "staged"
	}
	// Named again: merged columns have no names.
	rows := fmt.Sprintf("SELECT %s, %d FROM (%s) AS s (%[1]s)", list, b.Generation, filled(b.Layout, columns, from))
	if k := b.Layout.Keep; k.Limits() {
		rows += fmt.Sprintf(" WHERE s.%s >= %s OR s.%[1]s IS NULL", pg.Ident(k.Column), k.Cutoff())
	}
	return []string{
		"ANALYZE " + pg.Ident(b.Schema, buildTarget(b).staging()),
		"TRUNCATE TABLE " + member,
		fmt.Sprintf("INSERT INTO %s (%s, %s) %s%s", member, list, pg.Ident(job.GenerationColumn), staged, rows),
	}
}

// EndBuild deletes the segments and the staging table of a generation, built or given up. Repeatable.
func (Store) EndBuild(ctx context.Context, tx *pg.Tx, v job.Version, generation int) error {
	t := target{ref: v.Ref, generation: generation}
	if _, err := tx.Exec(ctx, t.sql(`DELETE FROM {segment} WHERE {of}`), t.args()); err != nil {
		return fmt.Errorf("delete the segments of %s: %w", v.Member(generation), err)
	}
	return dropStaging(ctx, tx, v, t)
}

const sqlBuildProgress = `
WITH s AS (SELECT * FROM kappactl.batch_segment WHERE job = @job AND number = @number AND generation = @generation),
     f AS (SELECT * FROM s WHERE state = 'failed' ORDER BY topic, partition, from_offset LIMIT 1)
SELECT count(*) AS segments, count(*) FILTER (WHERE state = 'done') AS done,
       coalesce(sum(to_offset - from_offset), 0)::bigint AS offsets,
       coalesce(sum(to_offset - CASE WHEN state = 'claimed' THEN least(coalesce(reached, from_offset), to_offset - 1) ELSE from_offset END)
           FILTER (WHERE state <> 'done'), 0)::bigint AS remaining,
       coalesce(sum(records), 0)::bigint AS records, coalesce(sum(bytes), 0)::bigint AS bytes,
       (SELECT coalesce(jsonb_object_agg(t.step, t.seconds), '{}') FROM (
            SELECT e.key AS step, sum(e.value::double precision) AS seconds FROM s, jsonb_each_text(s.timings) AS e GROUP BY 1) AS t) AS timings,
       coalesce((SELECT fault FROM f), '') AS fault, coalesce((SELECT error FROM f), '') AS fault_detail,
       coalesce((SELECT topic FROM f), '') AS topic, coalesce((SELECT partition FROM f), 0) AS partition,
       coalesce((SELECT fault_from FROM f), 0) AS fault_from, coalesce((SELECT fault_to FROM f), 0) AS fault_to
  FROM s`

// BuildProgress reads how far a generation is read.
func (Store) BuildProgress(ctx context.Context, db pg.DB, ref job.Ref, generation int) (job.BuildProgress, error) {
	found, err := pg.Structs[job.BuildProgress](ctx, db, sqlBuildProgress, target{ref: ref, generation: generation}.args())
	if err != nil {
		return job.BuildProgress{}, fmt.Errorf("read the progress of %s: %w", ref.Member(generation), err)
	}
	return found[0], nil
}

const (
	sqlCut = `
SELECT topic_id::text AS topic_id, topic, partition, covers_from, next, leader_epoch, next < frozen_end AS replaying FROM kappactl.position
 WHERE job = @job AND number = @number ORDER BY topic_id, partition FOR UPDATE`
	sqlEpoch = `UPDATE kappactl.position SET epoch = @epoch WHERE job = @job AND number = @number`
)

// Cut locks the positions of a version, as commits do, and returns what its table holds of each partition.
func (Store) Cut(ctx context.Context, tx *pg.Tx, ref job.Ref) ([]job.Frozen, error) {
	type row struct {
		TopicID     string
		Topic       string
		Partition   int32
		CoversFrom  int64
		Next        int64
		LeaderEpoch int32
		Replaying   bool
	}
	found, err := pg.Structs[row](ctx, tx, sqlCut, refArgs(ref))
	if err != nil {
		return nil, fmt.Errorf("read the positions of %s: %w", ref, err)
	}
	out := make([]job.Frozen, len(found))
	for i, r := range found {
		id, err := job.ParseTopicID(r.TopicID)
		if err != nil {
			return nil, fmt.Errorf("read the positions of %s: %w", ref, err)
		}
		if r.Replaying {
			return nil, fmt.Errorf("%s is still replayed", ref)
		}
		out[i] = job.Frozen{
			Partition: job.Partition{Topic: r.Topic, TopicID: id, ID: r.Partition},
			Range:     job.Range{From: r.CoversFrom, To: r.Next}, LeaderEpoch: r.LeaderEpoch,
		}
	}
	return out, nil
}

// Rotate makes the commits of a version write rows of another epoch. The caller has its positions from Cut.
func (Store) Rotate(ctx context.Context, tx *pg.Tx, ref job.Ref, epoch int) error {
	args := refArgs(ref)
	args["epoch"] = epoch
	if _, err := tx.Exec(ctx, sqlEpoch, args); err != nil {
		return fmt.Errorf("set the epoch of %s: %w", ref, err)
	}
	return nil
}
