package archiver_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/kappactl/kappactl/batchlayer/archiver"
	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/typed"
)

// Once typed columns are kept, agents store those of new files, also of merged ones, and forget them when no version declares the columns.
func TestTypedColumnsAreKept(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers, 1, nil)
	w.want(10*time.Millisecond, 8) // no file is too small
	w.sql(`UPDATE kappactl.version SET spec = jsonb_set(jsonb_set(spec, '{source,format}', '"json"'), '{source,columns}',
		'[{"Name": "v", "Type": "bigint"}]')`)
	w.start(archiver.Config{})
	p := w.partition(0)
	kafkatest.Produce(t, brokers, w.topic, 0, `{"v":0}`)
	w.archived(p, 1)
	src, err := typed.Store{}.Source(t.Context(), w.pool, "o", nil)
	if err != nil || src == nil || len(src.Columns) != 1 || src.Columns[0].Name != "v" {
		t.Fatalf("source %+v, %v", src, err)
	}
	for range 2 {
		if err := (typed.Store{}).Keep(t.Context(), w.pool, *src); err != nil {
			t.Fatal(err)
		}
	}
	kafkatest.Produce(t, brokers, w.topic, 0, `{"v":1}`)
	kafkatest.Until(t, "all files are typed", func() bool {
		var files, typed int
		err := w.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM kappactl.archive_file), (SELECT count(*) FROM kappactl.archive_typed)`).Scan(&files, &typed)
		if err != nil {
			t.Fatal(err)
		}
		return files == 2 && typed == 2
	})
	w.sql(`UPDATE kappactl.version SET spec = jsonb_set(spec, '{source,columns}', '[{"Name": "w", "Type": "bigint"}]')`)
	unused, err := typed.Store{}.Unused(t.Context(), w.pool)
	if err == nil {
		err = archive.Store{}.Delete(t.Context(), w.at, unused)
	}
	var kept string
	if err != nil || len(unused) != 2 {
		t.Fatalf("%d files are unused, %v", len(unused), err)
	}
	if err := w.pool.QueryRow(t.Context(), `SELECT typed::text FROM kappactl.archive`).Scan(&kept); err != nil || kept != "{}" {
		t.Errorf("kept %s, %v", kept, err)
	}
	if left, err := os.ReadDir(w.dir); err != nil || len(left) == 0 {
		t.Error(fmt.Sprint(left), err)
	}
	w.equal(p, 0, 2)
}
