package speedlayer

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// segmentColumn is the column of staging that says which segment a row came from.
const segmentColumn = "_segment"

const sqlFreeze = `
INSERT INTO kappactl.position (job, number, topic_id, topic, partition, next, covers_from, frozen_end, leader_epoch, epoch)
SELECT @job, @number, f.topic_id, f.topic, f.partition, f.from_offset, f.from_offset, f.to_offset, f.leader_epoch, ` + newestEpoch + `
  FROM unnest(@topic_ids::uuid[], @topics::text[], @partitions::integer[], @froms::bigint[], @tos::bigint[], @epochs::integer[])
       AS f (topic_id, topic, partition, from_offset, to_offset, leader_epoch)
 ORDER BY f.topic_id, f.partition
ON CONFLICT DO NOTHING
RETURNING topic_id::text AS topic_id, partition`

// Freeze writes the position rows, cuts their ranges into segments and makes the staging table. A partition that has a
// position row is left alone.
func (s Store) Freeze(ctx context.Context, tx *pg.Tx, v job.Version, frozen []job.Frozen) error {
	added, err := s.addPositions(ctx, tx, v.Ref, frozen)
	if err != nil {
		return fmt.Errorf("freeze %s: %w", v.Ref, err)
	}
	if len(added) == 0 {
		return nil // done before; staging may be sealed away already
	}
	if err := makeStaging(ctx, tx, v, target{ref: v.Ref}); err != nil {
		return fmt.Errorf("freeze %s: %w", v.Ref, err)
	}
	return nil
}

// makeStaging makes the staging table of a target.
func makeStaging(ctx context.Context, tx *pg.Tx, v job.Version, t target) error {
	if _, err := tx.Exec(ctx, createStaging(v, t)); err != nil {
		return fmt.Errorf("make the staging table: %w", taken(err, pg.Ident(v.Schema, t.staging())))
	}
	return nil
}

// taken makes a refusal of the error that a relation has the name of the staging table already. Segments and staging
// table are made and removed in the same transactions, so that relation is not ours.
func taken(err error, staging string) error {
	if pg.Code(err) != pgerrcode.DuplicateTable {
		return err
	}
	return &job.Refusal{
		Code: job.ExitConflict, Err: err,
		Cause: fmt.Sprintf("%s exists and kappactl did not make it", staging),
		Next:  "rename or drop that relation, or give the job another name",
	}
}

// stagingComment marks a staging table as ours.
func stagingComment(t target) string {
	if t.build() {
		return fmt.Sprintf("kappactl: rows of generation %d of version %s of job %s. Dropped when it is built.",
			t.generation, t.ref.Number, t.ref.Job)
	}
	return fmt.Sprintf("kappactl: replayed rows of version %s of job %s. Dropped when the replay ends.", t.ref.Number,
		t.ref.Job)
}

// createStaging is the DDL of the staging table. It is logged, so that a segment that is done stays done.
func createStaging(v job.Version, t target) string {
	names, types := v.Layout.StagedColumns()
	columns := []string{pg.Ident(segmentColumn) + " bigint NOT NULL"}
	for i, n := range names {
		columns = append(columns, pg.Ident(n)+" "+types[i])
	}
	table := pg.Ident(v.Schema, t.staging())
	return fmt.Sprintf("CREATE TABLE %s (%s); COMMENT ON TABLE %[1]s IS '%[3]s'", table, strings.Join(columns, ", "),
		stagingComment(t))
}

const sqlOwnStaging = `
SELECT EXISTS (
       SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = @schema AND c.relname = @name AND c.relkind = 'r' AND obj_description(c.oid, 'pg_class') = @comment)`

// dropStaging drops the staging table, and leaves a relation of its name alone that kappactl did not make.
func dropStaging(ctx context.Context, db pg.DB, v job.Version, t target) error {
	var ours bool
	args := pgx.NamedArgs{"schema": v.Schema, "name": t.staging(), "comment": stagingComment(t)}
	if err := db.QueryRow(ctx, sqlOwnStaging, args).Scan(&ours); err != nil {
		return fmt.Errorf("look for the staging table of %s: %w", v.Ref, err)
	}
	if !ours {
		return nil
	}
	if _, err := db.Exec(ctx, "DROP TABLE IF EXISTS "+pg.Ident(v.Schema, t.staging())); err != nil {
		return fmt.Errorf("drop the staging table of %s: %w", v.Ref, err)
	}
	return nil
}

// addPositions gives the partitions that have none a position and segments, and returns them.
func (s Store) addPositions(ctx context.Context, tx *pg.Tx, ref job.Ref, frozen []job.Frozen) ([]job.Frozen, error) {
	if err := lockVersion(ctx, tx, ref); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, sqlFreeze, target{ref: ref}.frozenArgs(frozen))
	if err != nil {
		return nil, fmt.Errorf("write positions: %w", err)
	}
	type key struct {
		TopicID   string
		Partition int32
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByName[key])
	if err != nil {
		return nil, fmt.Errorf("write positions: %w", err)
	}
	isNew := map[key]bool{}
	for _, k := range keys {
		isNew[k] = true
	}
	var added []job.Frozen
	for _, f := range frozen {
		if isNew[key{f.TopicID.String(), f.ID}] {
			added = append(added, f)
		}
	}
	return added, addSegments(ctx, tx, target{ref: ref}, added)
}

func (t target) frozenArgs(frozen []job.Frozen) pgx.NamedArgs {
	var (
		ids, topics []string
		partitions  []int32
		epochs      []int32
		froms, tos  []int64
	)
	for _, f := range frozen {
		ids, topics, partitions = append(ids, f.TopicID.String()), append(topics, f.Topic), append(partitions, f.ID)
		froms, tos, epochs = append(froms, f.From), append(tos, max(f.From, f.To)), append(epochs, f.LeaderEpoch)
	}
	args := t.args()
	args["topic_ids"], args["topics"], args["partitions"] = ids, topics, partitions
	args["froms"], args["tos"], args["epochs"] = froms, tos, epochs
	return args
}

const sqlAddSegments = `
INSERT INTO {segment} (job, number{, generation}, topic_id, topic, partition, from_offset, to_offset, leader_epoch)
SELECT @job, @number{, @generation}, f.topic_id, f.topic, f.partition, f.from_offset, f.to_offset, f.leader_epoch
  FROM unnest(@topic_ids::uuid[], @topics::text[], @partitions::integer[], @froms::bigint[], @tos::bigint[], @epochs::integer[])
       WITH ORDINALITY AS f (topic_id, topic, partition, from_offset, to_offset, leader_epoch, place)
 ORDER BY f.place`

// addSegments cuts the given ranges into segments; their ids say in which order they are read.
func addSegments(ctx context.Context, tx *pg.Tx, t target, ranges []job.Frozen) error {
	partitions := make([][]job.Frozen, len(ranges))
	for i, f := range ranges {
		for _, r := range cut(f.Range, f.SplitAt) {
			part := f
			part.Range = r
			partitions[i] = append(partitions[i], part)
		}
	}
	segments := interleave(partitions)
	if len(segments) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, t.sql(sqlAddSegments), t.frozenArgs(segments)); err != nil {
		return fmt.Errorf("write segments: %w", err)
	}
	return nil
}

const (
	sqlFrozenEnds = `
SELECT topic_id::text AS topic_id, topic, partition, frozen_end, next > covers_from AS sealed FROM kappactl.position
 WHERE job = @job AND number = @number ORDER BY topic_id, partition FOR UPDATE`
	sqlExtend = `
UPDATE kappactl.position AS p SET frozen_end = f.to_offset
  FROM unnest(@topic_ids::uuid[], @partitions::integer[], @tos::bigint[]) AS f (topic_id, partition, to_offset)
 WHERE p.job = @job AND p.number = @number AND p.topic_id = f.topic_id AND p.partition = f.partition`
)

// Extend moves the frozen ends to the given To and adds segments for what came since. A partition that has no position
// yet gets one over its whole range. After Seal it is ErrSealed.
func (s Store) Extend(ctx context.Context, tx *pg.Tx, ref job.Ref, frozen []job.Frozen) error {
	ends, err := s.frozenEnds(ctx, tx, ref)
	if err != nil {
		return fmt.Errorf("extend %s: %w", ref, err)
	}
	var longer, missing []job.Frozen
	for _, f := range frozen {
		switch end, known := ends[f.TopicID.String()+f.Partition.String()]; {
		case !known:
			missing = append(missing, f)
		case f.To > end:
			f.From = end
			longer = append(longer, f)
		}
	}
	if _, err := s.addPositions(ctx, tx, ref, missing); err != nil {
		return fmt.Errorf("extend %s: %w", ref, err)
	}
	if len(longer) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, sqlExtend, target{ref: ref}.frozenArgs(longer)); err != nil {
		return fmt.Errorf("extend %s: %w", ref, err)
	}
	if err := addSegments(ctx, tx, target{ref: ref}, longer); err != nil {
		return fmt.Errorf("extend %s: %w", ref, err)
	}
	return nil
}

func (Store) frozenEnds(ctx context.Context, tx *pg.Tx, ref job.Ref) (map[string]int64, error) {
	rows, err := tx.Query(ctx, sqlFrozenEnds, refArgs(ref))
	if err != nil {
		return nil, err
	}
	type end struct {
		TopicID   string
		Topic     string
		Partition int32
		FrozenEnd int64
		Sealed    bool
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[end])
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for _, e := range found {
		if e.Sealed {
			return nil, ErrSealed
		}
		out[e.TopicID+job.Partition{Topic: e.Topic, ID: e.Partition}.String()] = e.FrozenEnd
	}
	return out, nil
}
