package speedlayer

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// landed is a result batch as Land gives it; "NULL" is NULL.
func landed(rows ...[]string) arrow.RecordBatch {
	var fields []arrow.Field
	for range rows[0] {
		fields = append(fields, arrow.Field{Name: "c", Type: arrow.BinaryTypes.String, Nullable: true})
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for _, row := range rows {
		for i, v := range row {
			column := b.Field(i).(*array.StringBuilder)
			if v == "NULL" {
				column.AppendNull()
			} else {
				column.Append(v)
			}
		}
	}
	return b.NewRecordBatch()
}

// merge runs the upsert of the live commit over batches.
func merge(t *testing.T, pool *pg.Pool, ref job.Ref, l job.Layout, batches ...arrow.RecordBatch) {
	t.Helper()
	rows := &table{}
	for _, b := range batches {
		if err := rows.add(l, b); err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	r := &run{version: &version{ref: ref, layout: l, upsert: upsert(at(ref, l))}}
	inTx(t, pool, func(tx *pg.Tx) error { return r.merge(t.Context(), tx, rows, 0) })
}

func TestUpsertMergesIntoTheTableAndRowsOfOneKeyFirst(t *testing.T) { // D10
	t.Parallel()
	pool, ref := fresh(t, counts(), job.Live)
	const hour = "2026-01-01 10:00:00+00"
	odd := `a"b\c,{d}` + "\n\té"
	merge(t, pool, ref, counts(), landed(
		[]string{hour, odd, "1", "2.5"}, []string{hour, odd, "2", "NULL"}, []string{"NULL", "NULL", "1", "NULL"}))
	merge(t, pool, ref, counts(), landed([]string{hour, odd, "4", "1"}, []string{"NULL", "NULL", "1", "7"}),
		landed([]string{hour, odd, "9", "9"}))
	want := []string{"16 9.00", "2 7.00"}
	got := lines(t, pool, `SELECT n || ' ' || top AS x FROM public.pageviews__v1 ORDER BY hour`)
	for i := range got {
		got[i] = strings.Trim(got[i], `()"`)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	keys, err := pool.Query(t.Context(), `SELECT DISTINCT "user" FROM public.pageviews__v1 WHERE "user" IS NOT NULL`)
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	for keys.Next() {
		var key string
		if err := keys.Scan(&key); err != nil || key != odd {
			t.Errorf("key %q, %v: want %q", key, err, odd)
		}
	}
}

func TestUpsertWithoutKeysKeepsOneRow(t *testing.T) {
	t.Parallel()
	pool, ref := fresh(t, total(), job.Live)
	for range 3 {
		merge(t, pool, ref, total(), landed([]string{"5"}, []string{"1"}))
	}
	if diff := cmp.Diff([]string{"(18)"}, lines(t, pool, `SELECT n FROM public.pageviews__v1`)); diff != "" {
		t.Error(diff)
	}
}

func TestCopyTextComesBackAsItWas(t *testing.T) {
	pool, _ := pgtest.New(t)
	exec(t, pool, `CREATE TABLE public.copied (segment bigint, a text, b text)`, nil)
	l := job.Layout{Keys: []job.KeyColumn{{Name: "a", Type: "text"}}, States: []job.StateColumn{{Name: "b", Type: "text"}}}
	text := rapid.StringOfN(rapid.OneOf(rapid.SampledFrom([]rune("\\\n\r\t\b\fN.,\"'{}é ")), rapid.Rune().Filter(func(r rune) bool { return r != 0 })), 0, 30, -1)
	rapid.Check(t, func(q *rapid.T) {
		var rows [][]string
		for range rapid.IntRange(1, 5).Draw(q, "rows") {
			rows = append(rows, []string{text.Draw(q, "a"), text.Draw(q, "b")})
		}
		batch := landed(rows...)
		defer batch.Release()
		buf, err := appendCopy(nil, l, 42, batch)
		if err != nil {
			q.Fatal(err)
		}
		var got [][]string
		err = pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
			if _, err := tx.Exec(t.Context(), `TRUNCATE public.copied`); err != nil {
				return err
			}
			if _, err := tx.Raw().Conn().PgConn().CopyFrom(t.Context(), strings.NewReader(string(buf)), "COPY public.copied FROM STDIN"); err != nil {
				return err
			}
			found, err := tx.Query(t.Context(), `SELECT coalesce(a, 'NULL'), coalesce(b, 'NULL') FROM public.copied WHERE segment = 42`)
			if err != nil {
				return err
			}
			defer found.Close()
			for found.Next() {
				row := make([]string, 2)
				if err := found.Scan(&row[0], &row[1]); err != nil {
					return err
				}
				got = append(got, row)
			}
			return found.Err()
		})
		if err != nil {
			q.Fatal(err)
		}
		if diff := cmp.Diff(rows, got); diff != "" {
			q.Fatal(diff)
		}
	})
}

func TestRowsWithAKeyThatNoIndexHoldsAreRefused(t *testing.T) {
	l := counts()
	fit, long := strings.Repeat("x", maxKey-22), strings.Repeat("x", maxKey-21)
	for key, bad := range map[string]bool{fit: false, long: true} {
		batch := landed([]string{"2026-01-01 10:00:00+00", key, "1", "1"})
		var tooLong *keyTooLong
		if _, err := appendCopy(nil, l, 1, batch); errors.As(err, &tooLong) != bad {
			t.Errorf("copy of a key of %d bytes: %v", len(key)+22, err)
		}
		if err := (&table{}).add(l, batch); errors.As(err, &tooLong) != bad {
			t.Errorf("upsert of a key of %d bytes: %v", len(key)+22, err)
		}
		batch.Release()
	}
}
