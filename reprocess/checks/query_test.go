package checks

import (
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// TestTheRowsOfACheckAreCountedAndNotKept: 300,000 of them would take more than the megabyte that is there.
func TestTheRowsOfACheckAreCountedAndNotKept(t *testing.T) {
	pool, _ := pgtest.New(t)
	err := pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
		for _, sql := range []string{createFence, "SET LOCAL work_mem = '64kB'", "SET LOCAL temp_file_limit = '1MB'"} {
			if _, err := tx.Raw().Exec(t.Context(), sql); err != nil {
				return err
			}
		}
		_, _, err := runSQL(t.Context(), tx.Raw(), "SELECT false FROM generate_series(1, 300) a, generate_series(1, 1000) b")
		if err == nil || !strings.HasPrefix(err.Error(), "it returned 300,000 rows;") {
			t.Errorf("%v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
