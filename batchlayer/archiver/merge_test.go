package archiver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kappactl/kappactl/batchlayer/archiver"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// Small files are merged while the archive goes on, and those that were replaced are deleted when their time has come.
func TestSmallFilesAreMerged(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers, 1, nil)
	w.want(10*time.Millisecond, 64<<20)
	w.start(archiver.Config{KeepReplaced: time.Millisecond})
	p := w.partition(0)
	const records = 20
	for i := range int64(records) {
		kafkatest.Produce(t, brokers, w.topic, 0, fmt.Sprint("v", i))
		w.archived(p, i+1)
	}
	w.equal(p, 0, records)
	kafkatest.Until(t, "only the files of the manifest are left", func() bool {
		files := w.archived(p, records)
		if len(files) >= records/2 {
			return false
		}
		var listed []string
		for _, f := range files {
			listed = append(listed, filepath.Join(w.dir, f.Name))
		}
		found, err := filepath.Glob(filepath.Join(w.dir, "*", "*", "*", "*.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(listed)
		return slices.Equal(listed, found)
	})
	w.equal(p, 0, records)
	w.sound(0)
}

// A small file that is damaged is not merged; the archive goes on.
func TestADamagedFileIsNotMerged(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers, 1, nil)
	w.want(10*time.Millisecond, 64<<20)
	w.start(archiver.Config{})
	p := w.partition(0)
	kafkatest.Produce(t, brokers, w.topic, 0, "first")
	first := w.archived(p, 1)[0]
	if err := os.WriteFile(filepath.Join(w.dir, first.Name), []byte("PAR1"), 0o600); err != nil {
		t.Fatal(err)
	}
	const records = 12
	for i := range int64(records) {
		kafkatest.Produce(t, brokers, w.topic, 0, fmt.Sprint("v", i))
		w.archived(p, i+2)
	}
	if files := w.archived(p, records+1); len(files) != records+1 || files[0].Name != first.Name {
		t.Errorf("%d files", len(files))
	}
}
