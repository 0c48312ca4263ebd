package speedlayer

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// fillSettings bound the memory of the merge, which may take its time. They end with the transaction.
const fillSettings = `
SELECT set_config('work_mem', '256MB', true), set_config('synchronous_commit', 'on', true), ` + plainValues

// Fill checks that what is staged is the whole replay, each record once, and replaces the content of the version table
// by the merge of staging, in one transaction. It is repeatable until Seal, which takes the staging table away: a late
// Fill of a controller that was replaced meets ErrSealed and touches nothing.
func (s Store) Fill(ctx context.Context, pool *pg.Pool, ref job.Ref, schema string, l job.Layout) error {
	err := pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, fillSettings); err != nil {
			return err
		}
		// Against a segment that is being copied, and against Seal.
		_, err := tx.Exec(pg.Long(ctx), "LOCK TABLE "+pg.Ident(schema, ref.Staging())+" IN SHARE MODE")
		if pg.Code(err) == "42P01" {
			return ErrSealed
		}
		if err != nil {
			return fmt.Errorf("lock staging: %w", err)
		}
		if err := s.checkStaged(ctx, tx, ref, schema); err != nil {
			return err
		}
		for _, sql := range fillSteps(ref, schema, l) {
			if _, err := tx.Exec(pg.Long(ctx), sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("fill %s: %w", ref.Table(), err)
	}
	return nil
}

// fillSteps empty the version table and merge staging into it. Nobody reads the table before Seal.
func fillSteps(ref job.Ref, schema string, l job.Layout) []string {
	table, staging := pg.Ident(schema, ref.Table()), pg.Ident(schema, ref.Staging())
	names, _ := l.StagedColumns()
	columns := make([]string, len(names))
	for i, n := range names {
		columns[i] = pg.Ident(n)
	}
	return []string{
		"ANALYZE " + staging,
		"TRUNCATE TABLE " + table,
		fmt.Sprintf("INSERT INTO %s (%s) %s", table, strings.Join(columns, ", "), filled(l, columns, staging)),
	}
}

// filled is the SELECT that merges what is staged.
func filled(l job.Layout, columns []string, staging string) string {
	keys := append(append([]string{}, columns[1:1+len(l.Keys)]...), columns[0])
	switch l.Shape {
	case job.Rows:
		return fmt.Sprintf("SELECT %s FROM %s AS e", strings.Join(of("e", columns), ", "), staging)
	case job.Latest:
		return fmt.Sprintf("SELECT %s FROM %s AS e ORDER BY %s", latest(columns, keys), staging, latestOrder(l, keys))
	case job.Rollup, job.Adopted: // what was adopted is never written
	}
	return fmt.Sprintf("SELECT %s FROM %s AS e GROUP BY %s", strings.Join(merged(l), ", "), staging, strings.Join(of("e", columns[:1+len(l.Keys)]), ", "))
}

// merged is the select list that merges rows of relation e by lane and keys, in the order of StagedColumns.
func merged(l job.Layout) []string {
	out := []string{"e." + pg.Ident(job.LaneColumn)}
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
  FROM kappactl.segment WHERE job = @job AND number = @number ORDER BY topic_id, partition, from_offset, to_offset`
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

// checkStaged proves from the rows alone that done segments tile every frozen range and that each has as many staged
// rows as it said.
func (s Store) checkStaged(ctx context.Context, tx *pg.Tx, ref job.Ref, schema string) error {
	ranges, err := collectRows[rangeRow](ctx, tx, sqlFrozenRanges, refArgs(ref))
	if err != nil {
		return fmt.Errorf("read positions: %w", err)
	}
	segments, err := collectRows[segmentRow](ctx, tx, sqlSegments, refArgs(ref))
	if err != nil {
		return fmt.Errorf("read segments: %w", err)
	}
	staged, err := stagedRows(ctx, tx, ref, schema)
	if err != nil {
		return err
	}
	wrong := append(holes(ranges, segments), miscounted(segments, staged)...)
	if len(ranges) == 0 {
		wrong = append(wrong, "no position was frozen")
	}
	if len(wrong) > 0 {
		return &IncompleteError{Ref: ref, Detail: wrong[:min(len(wrong), 10)]}
	}
	return nil
}

func collectRows[T any](ctx context.Context, db pg.DB, sql string, args pgx.NamedArgs) ([]T, error) {
	rows, err := db.Query(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
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

func stagedRows(ctx context.Context, tx *pg.Tx, ref job.Ref, schema string) (map[int64]int64, error) {
	sql := fmt.Sprintf("SELECT %[1]s AS id, count(*) AS rows FROM %[2]s GROUP BY 1", pg.Ident(segmentColumn), pg.Ident(schema, ref.Staging()))
	type count struct{ ID, Rows int64 }
	found, err := collectRows[count](pg.Long(ctx), tx, sql, nil)
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
func (s Store) Seal(ctx context.Context, tx *pg.Tx, ref job.Ref, schema string) error {
	if err := lockPositions(ctx, tx, ref); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlSeal, refArgs(ref)); err != nil {
		return fmt.Errorf("seal %s: %w", ref, err)
	}
	var left int
	if err := tx.QueryRow(ctx, sqlUnsealed, refArgs(ref)).Scan(&left); err != nil {
		return fmt.Errorf("seal %s: %w", ref, err)
	}
	if left > 0 {
		return &IncompleteError{Ref: ref, Detail: []string{fmt.Sprintf("%d partitions have open segments", left)}}
	}
	return dropStaging(ctx, tx, ref, schema)
}
