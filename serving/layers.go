package serving

import (
	"context"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// maxGeneration is up to which generation names are known to fit.
const maxGeneration = 999_999

// layers is the DDL of what a version of mode lambda has beside its table: the batch table with generation 0, and the
// pointer. The batch table has no index, key or trigger, which ATTACH would build on each generation. The pointer always
// has its one row: without it the view would be empty.
func layers(v job.Version) []string {
	batch, pointer := qualified(v.Schema, v.Batch()), qualified(v.Schema, v.Pointer())
	steps := []string{
		fmt.Sprintf("CREATE TABLE %s (%s) PARTITION BY LIST (%s)", batch,
			strings.Join(append(storedColumns(v.Layout), ident(job.GenerationColumn)+" integer NOT NULL"), ", "), ident(job.GenerationColumn)),
		comment("TABLE", batch, "kappactl: batch generations"+writtenFor(v.Ref)),
		fmt.Sprintf("CREATE TABLE %s (one boolean PRIMARY KEY DEFAULT true CHECK (one), generation integer NOT NULL)", pointer),
		comment("TABLE", pointer, "kappactl: number of the live generation"+writtenFor(v.Ref)),
		fmt.Sprintf("INSERT INTO %s (generation) VALUES (0)", pointer),
		fmt.Sprintf("CREATE RULE one_row AS ON DELETE TO %s DO INSTEAD NOTHING", pointer),
		fmt.Sprintf("REVOKE DELETE, TRUNCATE ON %s FROM CURRENT_USER", pointer),
	}
	return append(append(steps, member(v, 0)...), attach(v, 0))
}

// foreignLayer refuses what has the name of one of the version's tables while the version has none.
func foreignLayer(ctx context.Context, db pg.DB, v job.Version) error {
	if !v.Layout.Lambda {
		return nil
	}
	for _, name := range append(v.Tables(), v.Member(0)) {
		t, err := readTable(ctx, db, v.Schema, name)
		if err != nil {
			return err
		}
		if t != nil {
			return foreign(v, name)
		}
	}
	return nil
}

// memberPattern is the regular expression of the names of generations, empty without any.
func memberPattern(v job.Version) string {
	if !v.Layout.Lambda {
		return ""
	}
	return "^" + v.Table() + "_g[0-9]+$"
}
