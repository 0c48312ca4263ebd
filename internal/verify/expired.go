package verify

import (
	"context"
	"fmt"

	"github.com/kappactl/kappactl/internal/pg"
)

// readCutoff reads the time before which rows are expired in the snapshot, in the form of the time key's canon.
func (r *run) readCutoff(ctx context.Context, tx *pg.Tx) error {
	k := r.Layout.Keep
	if !k.Limits() {
		return nil
	}
	form, err := canonOf(k.Column, k.Type)
	if err != nil {
		return err
	}
	var at int64
	if err := tx.QueryRow(ctx, "SELECT ("+form.postgres("("+k.Cutoff()+")")+")::bigint").Scan(&at); err != nil {
		return fmt.Errorf("read which rows are expired: %w", err)
	}
	r.cutoff = &at
	return nil
}

// expire removes expired rows from both tables. Readers do not see them, and they are deleted eventually.
func (r *run) expire(ctx context.Context) error {
	if r.cutoff == nil {
		return nil
	}
	for i, c := range r.columns {
		if c.name != r.Layout.Keep.Column {
			continue
		}
		for _, table := range []string{"served", "expected"} {
			old := fmt.Sprintf("coalesce(%s < %d, %s = '-infinity')", r.timeOf(i), *r.cutoff, column(i))
			if err := r.exec(ctx, fmt.Sprintf("DELETE FROM %s WHERE coalesce(%s, false)", table, old), nil); err != nil {
				return fmt.Errorf("exclude expired rows: %w", err)
			}
		}
	}
	return nil
}
