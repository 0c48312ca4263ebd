package compare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// work is one measurement under way.
type work struct {
	Config
	rig
	program
	way     Way
	place   place
	folder  string // for the job files and the archive
	measure Measure
	records int64
}

// run takes the job through the way and fills measure.
func (w *work) run(ctx context.Context) error {
	if err := w.program.run(ctx, nil, "init"); err != nil {
		return err
	}
	if _, err := w.pool.Exec(ctx, "CREATE SCHEMA "+pg.Ident(w.views)); err != nil {
		return fmt.Errorf("create a schema for the view: %w", err)
	}
	before, err := w.wal(ctx)
	if err != nil {
		return err
	}
	peaks, stop := w.watchPeak(ctx)
	defer stop()
	steps := []func(context.Context) error{w.deploy, w.batch, w.verify}
	if w.way.Archives() {
		steps = append([]func(context.Context) error{w.fillArchive}, steps...)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	stop()
	w.measure.Peak = <-peaks
	after, err := w.wal(ctx)
	if err != nil {
		return err
	}
	w.measure.WAL = after - before
	if w.measure.Table, w.measure.Batches, err = w.sizes(ctx); err != nil {
		return err
	}
	w.measure.Peak = max(w.measure.Peak, w.measure.Table+w.measure.Batches)
	w.measure.Archived, err = folderBytes(filepath.Join(w.folder, "archive"))
	return err
}

// write writes a job file of the measurement.
func (w *work) write(name string, text []byte) (string, error) {
	path := filepath.Join(w.folder, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("write a job file: %w", err)
	}
	return path, nil
}

// fillArchive archives what the topics hold.
func (w *work) fillArchive(ctx context.Context) error {
	text, err := keeper(w.File, w.place, w.Now().Add(time.Hour))
	if err != nil {
		return err
	}
	path, err := w.write("archive.yaml", text)
	if err != nil {
		return err
	}
	began := w.Now()
	u, err := w.serving(ctx, w.agentAddress, func(ctx context.Context) error {
		if err := w.program.run(ctx, nil, "deploy", path); err != nil {
			return err
		}
		if err := w.awaitArchive(ctx); err != nil {
			return err
		}
		return w.program.run(ctx, nil, "drop", keeperJob, "--yes")
	})
	if err != nil {
		return err
	}
	took := w.Now().Sub(began).Seconds()
	w.measure.Archive, w.measure.ArchiveCPU = &took, &u.cpu
	w.measure.Fetched += u.fetched
	return nil
}

// awaitArchive waits until the archive holds what the topics held when it was asked.
func (w *work) awaitArchive(ctx context.Context) error {
	for {
		var partitions []struct {
			Behind *int64 `json:"behind"`
		}
		if err := w.program.run(ctx, &partitions, "archive", "status"); err != nil {
			return err
		}
		behind := len(partitions) == 0
		for _, p := range partitions {
			if p.Behind == nil || *p.Behind > 0 {
				behind = true
			}
		}
		if !behind {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// deploy replays the job until readers see it, then watches how fresh it is.
func (w *work) deploy(ctx context.Context) error {
	text, err := variant(w.File, w.way, w.place)
	if err != nil {
		return err
	}
	path, err := w.write("job.yaml", text)
	if err != nil {
		return err
	}
	u, err := w.serving(ctx, w.agentAddress, func(ctx context.Context) error {
		began := w.Now()
		var deployed struct {
			Records int64 `json:"records"`
		}
		if err := w.program.run(ctx, &deployed, "deploy", path); err != nil {
			return err
		}
		w.measure.Deploy, w.records = w.Now().Sub(began).Seconds(), deployed.Records
		return w.watchFreshness(ctx)
	})
	if err != nil {
		return err
	}
	w.measure.DeployCPU = u.cpu
	w.measure.Fetched += u.fetched
	return nil
}

// lookEvery is how often the ends and the positions are compared: no freshness below it can be seen.
const lookEvery = 100 * time.Millisecond

func (w *work) watchFreshness(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var f freshness
	for until := w.Now().Add(w.Watch); w.Now().Before(until); {
		facts, err := w.Brokers.Offsets(ctx, w.Topics)
		if err != nil {
			return fmt.Errorf("ask the brokers for the ends: %w", err)
		}
		ends := map[job.Partition]int64{}
		for _, p := range facts {
			if p.Err == nil {
				ends[p.Partition] = p.LastStable
			}
		}
		positions, err := w.positions(ctx, w.Job.Job)
		if err != nil {
			return err
		}
		f.look(w.Now(), ends, positions)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	w.measure.Freshness = f.result()
	return nil
}

// batch runs the batch layer twice from scratch; only lambda has one.
func (w *work) batch(ctx context.Context) error {
	if w.way != Lambda {
		return nil
	}
	u, err := w.serving(ctx, w.agentAddress, func(ctx context.Context) error {
		for range 2 {
			began := w.Now()
			if err := w.program.run(ctx, nil, "batch", "run", string(w.Job.Job), "--full", "--wait"); err != nil {
				return err
			}
			took := w.Now().Sub(began).Seconds()
			w.measure.Batch = &took
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.measure.BatchCPU = &u.cpu
	w.measure.Fetched += u.fetched
	return nil
}

// verify compares what is served with one pass over the log.
func (w *work) verify(ctx context.Context) error {
	var result struct {
		Rows int64 `json:"rows"`
	}
	err := w.program.run(ctx, &result, "verify", string(w.Job.Job))
	var ended *endedError
	if errors.As(err, &ended) && ended.code == int(job.ExitChecks) {
		return nil
	}
	w.measure.Rows, w.measure.Equal = result.Rows, err == nil
	return err
}

// watchPeak polls the sizes of the tables until stop is called, then sends the largest sum.
func (w *work) watchPeak(ctx context.Context) (peak <-chan int64, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan int64, 1)
	go func() {
		var most int64
		for ctx.Err() == nil {
			if table, batch, err := w.sizes(ctx); err == nil {
				most = max(most, table+batch)
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
		out <- most
	}()
	return out, cancel
}

// folderBytes is the size of the files of a folder.
func folderBytes(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("measure the archive: %w", err)
	}
	return n, nil
}
