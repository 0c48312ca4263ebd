package serving

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// member is the DDL of the table of one generation. Its rows have the generation as their default, and its constraint
// is that of the partition, so that it is not read when it is attached.
func member(v job.Version, generation int) []string {
	table, column := qualified(v.Schema, v.Member(generation)), ident(job.GenerationColumn)
	columns := append(storedColumns(v.Layout),
		fmt.Sprintf("%s integer NOT NULL DEFAULT %d CONSTRAINT generation CHECK (%[1]s = %[2]d)", column, generation))
	return []string{
		fmt.Sprintf("CREATE TABLE %s (%s)", table, strings.Join(columns, ", ")),
		comment("TABLE", table, fmt.Sprintf("kappactl: generation %d", generation)+writtenFor(v.Ref)),
	}
}

func attach(v job.Version, generation int) string {
	return fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES IN (%d)",
		qualified(v.Schema, v.Batch()), qualified(v.Schema, v.Member(generation)), generation)
}

// CreateMember makes the table of a generation, empty and without an index, beside the batch table. Repeatable.
func (*Store) CreateMember(ctx context.Context, db pg.DB, v job.Version, generation int) error {
	name := v.Member(generation)
	t, err := readTable(ctx, db, v.Schema, name)
	if err != nil {
		return err
	}
	if t != nil {
		if t.Kind != "r" || !strings.Contains(t.Comment, writtenFor(v.Ref)) {
			return foreign(v, name)
		}
		return nil
	}
	if _, err := db.Exec(ctx, strings.Join(member(v, generation), ";\n")); err != nil {
		return fmt.Errorf("create table %s: %w", qualified(v.Schema, name), refused(err))
	}
	return nil
}

// IndexMember makes the unique index of a generation and those of serve.indexes. While it is a partition, which readers
// read, the latter are made without stopping anybody; db must not be a transaction.
func (*Store) IndexMember(ctx context.Context, db pg.DB, v job.Version, generation int) error {
	return makeIndexes(ctx, db, stored{v, v.Member(generation), v.Layout.KeyNames()})
}

// Attach makes a generation a partition of the batch table and lets plans show it. Readers and commits go on.
// Repeatable.
func (*Store) Attach(ctx context.Context, pool *pg.Pool, v job.Version, generation int) error {
	members, err := Members(ctx, pool, v)
	if err != nil {
		return err
	}
	if m, there := members[generation]; !there || m.Pending {
		if _, err := pool.Exec(ctx, attach(v, generation)); err != nil {
			return fmt.Errorf("attach generation %d of %s: %w", generation, v.Ref, refused(err))
		}
	}
	return raise(ctx, pool, v, generation)
}

// AnalyzeBatch renews the statistics of the batch table and of each generation in it. PostgreSQL does not do so by
// itself.
func (*Store) AnalyzeBatch(ctx context.Context, db pg.DB, v job.Version) error {
	if _, err := db.Exec(pg.Long(ctx), "ANALYZE "+qualified(v.Schema, v.Batch())); err != nil {
		return fmt.Errorf("analyze %s: %w", v.Batch(), refused(err))
	}
	return nil
}

// Detach takes a generation out of the batch table. It waits for every transaction that has touched the table and holds
// up nobody. One that was interrupted, by a timeout of a role or a pooler, is finished: that waits for locks on the
// generation while it keeps other generations from being attached, so it gives up soon. db must not be a transaction.
// Repeatable.
func (s *Store) Detach(ctx context.Context, db pg.DB, v job.Version, generation int) error {
	members, err := Members(ctx, db, v)
	if err != nil {
		return err
	}
	m, there := members[generation]
	if !there {
		return nil
	}
	sql := fmt.Sprintf("ALTER TABLE %s DETACH PARTITION %s", qualified(v.Schema, v.Batch()),
		qualified(v.Schema, v.Member(generation)))
	if m.Pending {
		sql = fmt.Sprintf("SET LOCAL lock_timeout = %d; %s FINALIZE", s.config.DropLockTimeout.Milliseconds(), sql)
	} else {
		sql += " CONCURRENTLY"
	}
	if _, err := db.Exec(pg.Long(ctx), sql); err != nil {
		return fmt.Errorf("detach generation %d of %s: %w", generation, v.Ref, refused(err))
	}
	return nil
}

// DropMember drops the table of a generation that is not in the batch table, never what depends on it. Repeatable.
func (s *Store) DropMember(ctx context.Context, db pg.DB, v job.Version, generation int) error {
	name := v.Member(generation)
	t, err := readTable(ctx, db, v.Schema, name)
	if err != nil || t == nil {
		return err
	}
	if t.Kind != "r" || !strings.Contains(t.Comment, writtenFor(v.Ref)) {
		return foreign(v, name)
	}
	// One text without parameters is one transaction, so the timeout ends with it.
	_, err = db.Exec(pg.Long(ctx), fmt.Sprintf("SET LOCAL lock_timeout = %d; DROP TABLE IF EXISTS %s",
		s.config.DropLockTimeout.Milliseconds(), qualified(v.Schema, name)))
	if err != nil && pg.Code(err) != pgerrcode.UndefinedTable {
		return fmt.Errorf("drop generation %d of %s: %w", generation, v.Ref, refused(err))
	}
	return nil
}

// Member is a partition of the batch table.
type Member struct {
	Generation int
	Pending    bool // its DETACH was interrupted: queries do not see it
}

// Members are the partitions of the batch table of a version, by generation; none when it is not of mode lambda.
func Members(ctx context.Context, db pg.DB, v job.Version) (map[int]Member, error) {
	if !v.Layout.Lambda {
		return nil, nil
	}
	found, err := pg.Structs[Member](ctx, db, selectMembers,
		pgx.NamedArgs{"schema": v.Schema, "batch": v.Batch(), "prefix": len(v.Member(0))})
	if err != nil {
		return nil, fmt.Errorf("list the generations of %s: %w", v.Ref, err)
	}
	out := map[int]Member{}
	for _, m := range found {
		out[m.Generation] = m
	}
	return out, nil
}
