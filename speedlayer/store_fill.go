package speedlayer

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgerrcode"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// fillSettings bound the memory of the merge, which may take its time. They end with the transaction.
const fillSettings = `
SELECT set_config('work_mem', '256MB', true), set_config('synchronous_commit', 'on', true), ` + plainValues

// Fill checks that what is staged is the whole replay, each record once, and replaces the content of the version table
// by the merge of staging, in one transaction. It is repeatable until Seal, which takes the staging table away: a late
// Fill of a controller that was replaced meets ErrSealed and touches nothing.
func (s Store) Fill(ctx context.Context, pool *pg.Pool, v job.Version) error {
	err := pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		return fill(ctx, tx, v, target{ref: v.Ref}, nil, fillSteps(v))
	})
	if err != nil {
		return fmt.Errorf("fill %s: %w", v.Table(), err)
	}
	return nil
}

// fill checks that what is staged covers the ranges, each offset once, and runs steps. ranges are those of the
// version's positions when they are nil.
func fill(ctx context.Context, tx *pg.Tx, v job.Version, t target, ranges []rangeRow, steps []string) error {
	if _, err := tx.Exec(ctx, fillSettings); err != nil {
		return err
	}
	// Against a segment that is being copied, and against Seal.
	_, err := tx.Exec(pg.Long(ctx), "LOCK TABLE "+pg.Ident(v.Schema, t.staging())+" IN SHARE MODE")
	if pg.Code(err) == pgerrcode.UndefinedTable {
		return ErrSealed
	}
	if err != nil {
		return fmt.Errorf("lock staging: %w", err)
	}
	if ranges == nil {
		if ranges, err = pg.Structs[rangeRow](ctx, tx, sqlFrozenRanges, refArgs(v.Ref)); err != nil {
			return fmt.Errorf("read positions: %w", err)
		}
	}
	if err := checkStaged(ctx, tx, v, t, ranges); err != nil {
		return err
	}
	for _, sql := range steps {
		if _, err := tx.Exec(pg.Long(ctx), sql); err != nil {
			return err
		}
	}
	return nil
}

// fillSteps empty the table that the replay fills and merge staging into it. Nobody reads the table before Seal.
func fillSteps(v job.Version) []string {
	table, staging := pg.Ident(v.Schema, v.Replayed()), pg.Ident(v.Schema, v.Staging())
	columns := stagedColumns(v.Layout)
	return []string{
		"ANALYZE " + staging,
		"TRUNCATE TABLE " + table,
		fmt.Sprintf("INSERT INTO %s (%s) %s", table, strings.Join(columns, ", "), filled(v.Layout, columns, staging)),
	}
}

// stagedColumns are the layout's stored columns, quoted.
func stagedColumns(l job.Layout) []string {
	names, _ := l.StagedColumns()
	columns := make([]string, len(names))
	for i, n := range names {
		columns[i] = pg.Ident(n)
	}
	return columns
}

// filled is the SELECT that merges what is staged.
func filled(l job.Layout, columns []string, staging string) string {
	keys := columns[:len(l.Keys)]
	switch l.Shape {
	case job.Rows:
		return fmt.Sprintf("SELECT %s FROM %s AS e", strings.Join(of("e", columns), ", "), staging)
	case job.Latest:
		return latest(l, columns, keys, staging)
	case job.Rollup, job.Adopted, job.Written: // what was adopted is never written
	}
	return fmt.Sprintf("SELECT %s FROM %s AS e %s", strings.Join(merged(l), ", "), staging, grouped(keys))
}

// merged is the select list that merges rows of relation e by key, in the order of StagedColumns.
func merged(l job.Layout) []string {
	var out []string
	for _, k := range l.Keys {
		out = append(out, "e."+pg.Ident(k.Name))
	}
	for _, st := range l.States {
		out = append(out, st.Aggregate)
	}
	return out
}

func of(alias string, columns []string) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = alias + "." + c
	}
	return out
}

const (
	sqlFrozenRanges = `
SELECT topic_id::text AS topic_id, topic, partition, covers_from AS from_offset, frozen_end AS to_offset
  FROM kappactl.position WHERE job = @job AND number = @number ORDER BY topic_id, partition`
	sqlSegments = `
SELECT topic_id::text AS topic_id, topic, partition, id, from_offset, to_offset, state, rows
  FROM {segment} WHERE {of} ORDER BY topic_id, partition, from_offset, to_offset`
)

type rangeRow struct {
	TopicID    string
	Topic      string
	Partition  int32
	FromOffset int64
	ToOffset   int64
}

func (r rangeRow) name() string { return fmt.Sprintf("%s/%d", r.Topic, r.Partition) }

type segmentRow struct {
	TopicID    string
	Topic      string
	Partition  int32
	ID         int64
	FromOffset int64
	ToOffset   int64
	State      string
	Rows       *int64
}

// checkStaged proves from the rows alone that done segments tile every range and that each has as many staged rows as
// it said.
func checkStaged(ctx context.Context, tx *pg.Tx, v job.Version, t target, ranges []rangeRow) error {
	segments, err := pg.Structs[segmentRow](ctx, tx, t.sql(sqlSegments), t.args())
	if err != nil {
		return fmt.Errorf("read segments: %w", err)
	}
	staged, err := stagedRows(ctx, tx, pg.Ident(v.Schema, t.staging()))
	if err != nil {
		return err
	}
	wrong := append(holes(ranges, segments), miscounted(segments, staged)...)
	if len(ranges) == 0 && !t.build() {
		wrong = append(wrong, "no position was frozen")
	}
	if len(wrong) > 0 {
		return &IncompleteError{Ref: v.Ref, Detail: wrong[:min(len(wrong), 10)]}
	}
	return nil
}

// holes are the offsets that done segments do not cover exactly once.
func holes(ranges []rangeRow, segments []segmentRow) []string {
	type key struct {
		topic     string
		partition int32
	}
	done := map[key][]job.Range{}
	for _, g := range segments {
		if g.State == "done" {
			k := key{g.TopicID, g.Partition}
			done[k] = append(done[k], job.Range{From: g.FromOffset, To: g.ToOffset})
		}
	}
	var out []string
	for _, r := range ranges {
		for _, w := range untiled(job.Range{From: r.FromOffset, To: r.ToOffset}, done[key{r.TopicID, r.Partition}]) {
			out = append(out, fmt.Sprintf("%s %s is not covered exactly once", r.name(), w))
		}
		delete(done, key{r.TopicID, r.Partition})
	}
	for k := range done {
		out = append(out, fmt.Sprintf("segments of %s/%d have no position", k.topic, k.partition))
	}
	return out
}

// miscounted are the segments whose staged rows are not those they committed. It uses up staged.
func miscounted(segments []segmentRow, staged map[int64]int64) []string {
	var out []string
	for _, g := range segments {
		if g.State == "done" && (g.Rows == nil || *g.Rows != staged[g.ID]) {
			out = append(out, fmt.Sprintf("segment %d of %s/%d [%d,%d) has %d staged rows, not what it committed",
				g.ID, g.Topic, g.Partition, g.FromOffset, g.ToOffset, staged[g.ID]))
		}
		if g.State == "done" {
			delete(staged, g.ID)
		}
	}
	for id, n := range staged {
		out = append(out, fmt.Sprintf("%d staged rows of segment %d, which is not done", n, id))
	}
	return out
}

func stagedRows(ctx context.Context, tx *pg.Tx, staging string) (map[int64]int64, error) {
	sql := fmt.Sprintf("SELECT %[1]s AS id, count(*) AS rows FROM %[2]s GROUP BY 1", pg.Ident(segmentColumn), staging)
	type count struct{ ID, Rows int64 }
	found, err := pg.Structs[count](pg.Long(ctx), tx, sql, nil)
	if err != nil {
		return nil, fmt.Errorf("count staged rows: %w", err)
	}
	out := map[int64]int64{}
	for _, c := range found {
		out[c.ID] = c.Rows
	}
	return out, nil
}

const sqlSeal = `
UPDATE kappactl.position AS p
   SET next = p.frozen_end, records = p.records + g.records, dead_letters = p.dead_letters + g.dead_letters,
       record_time = greatest(p.record_time, g.record_time), leader_epoch = coalesce(g.leader_epoch, p.leader_epoch)
  FROM (SELECT topic_id, partition, sum(records)::bigint AS records, sum(dead_letters)::bigint AS dead_letters,
               max(record_time) AS record_time, (array_agg(leader_epoch ORDER BY to_offset DESC))[1] AS leader_epoch,
               bool_and(state = 'done') AS done
          FROM kappactl.segment WHERE job = @job AND number = @number GROUP BY topic_id, partition) AS g
 WHERE p.job = @job AND p.number = @number AND p.topic_id = g.topic_id AND p.partition = g.partition
   AND p.next < p.frozen_end AND g.done`

const sqlUnsealed = `
SELECT count(*) FROM kappactl.position WHERE job = @job AND number = @number AND next < frozen_end`

// Seal ends the replay: every position is set to its frozen end, with what the segments counted, and the staging table
// is dropped. Repeatable.
func (s Store) Seal(ctx context.Context, tx *pg.Tx, v job.Version) error {
	if err := lockPositions(ctx, tx, v.Ref); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlSeal, refArgs(v.Ref)); err != nil {
		return fmt.Errorf("seal %s: %w", v.Ref, err)
	}
	var left int
	if err := tx.QueryRow(ctx, sqlUnsealed, refArgs(v.Ref)).Scan(&left); err != nil {
		return fmt.Errorf("seal %s: %w", v.Ref, err)
	}
	if left > 0 {
		return &IncompleteError{Ref: v.Ref, Detail: []string{fmt.Sprintf("%d partitions have open segments", left)}}
	}
	if v.Layout.Lambda {
		if err := sealGeneration(ctx, tx, v.Ref); err != nil {
			return err
		}
	}
	return dropStaging(ctx, tx, v, target{ref: v.Ref})
}
