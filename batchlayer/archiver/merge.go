package archiver

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/typed"
)

// mergeAgain is how long merging rests after a failure: each attempt reads all files again.
const mergeAgain = time.Hour

// merge merges the small files at the end of a partition's archive, when there are enough of them and no other
// partition is being merged. A failure does not stop the archive: the files are as good as they were. ErrLost: the
// claim is lost.
func (a *Archiver) merge(ctx context.Context, p *part, at archive.Position) error {
	if a.Now().Before(p.mergeDue) {
		return nil
	}
	select {
	case a.merging <- struct{}{}:
		defer func() { <-a.merging }()
	default:
		return nil
	}
	files, err := a.store.Mergeable(ctx, a.Pool, at)
	if err != nil || len(files) == 0 {
		return err
	}
	if err = a.merged(ctx, p.location, at, files); err == nil || errors.Is(err, archive.ErrLost) || ctx.Err() != nil {
		return err
	}
	p.mergeDue = a.Now().Add(mergeAgain)
	a.Log.Warn("archive: small files were not merged", "partition", p.String(), "error", err)
	return nil
}

// typeKept stores typed columns of the newest files, where they are wanted. A failure stops nothing: replays read the
// records.
func (a *Archiver) typeKept(ctx context.Context, p *part, at archive.Position) {
	if a.Now().Before(p.typeDue) {
		return
	}
	select {
	case a.merging <- struct{}{}:
		defer func() { <-a.merging }()
	default:
		return
	}
	made, err := typed.Store{}.TypeKept(ctx, a.Pool, a.Locations, at, a.config.Temp)
	switch {
	case err != nil && ctx.Err() == nil:
		p.typeDue = a.Now().Add(mergeAgain)
		a.Log.Warn("archive: typed columns were not stored", "partition", p.String(), "error", err)
	case made.Files > 0:
		a.Log.Info("archive: typed columns were stored", "partition", p.String(), "files", made.Files, "bytes", made.Bytes)
	}
}

func (a *Archiver) merged(ctx context.Context, l archive.Location, at archive.Position, files []archive.FileRow) error {
	f, err := archive.Merge(ctx, l, a.config.Temp, at.Cluster, files, min(rowGroup, a.config.Memory/4))
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Path) }() // in the agent's temporary folder, which goes with the agent
	if err := a.put(ctx, l, at, f); err != nil {
		return err
	}
	faultpoint.Hit(archive.MergeUploaded)
	if err := a.store.Replace(ctx, a.Pool, at, files, f, a.config.KeepReplaced); err != nil {
		return err
	}
	faultpoint.Hit(archive.MergeAfterCommit)
	a.Log.Info("archive: small files were merged", "partition", at.Of().String(), "files", len(files), "bytes", f.Bytes)
	return nil
}

// removals is how many replaced files one look deletes.
const removals = 100

// remove deletes files that were merged into others, once their time has come. Any agent does it.
func (a *Archiver) remove(ctx context.Context) error {
	due, err := a.store.Due(ctx, a.Pool, removals)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range due {
		errs = append(errs, a.store.Remove(ctx, a.Pool, a.Locations, r))
	}
	return errors.Join(errs...)
}
