package archiver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/retry"
)

// Run archives a partition under a claim until the claim is lost, a fault is noted or ctx ends.
func (a *Archiver) Run(ctx context.Context, item, claim int64) error {
	p, err := a.open(ctx, item, claim)
	if errors.Is(err, archive.ErrLost) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, p.stop = context.WithCancel(ctx)
	defer p.stop()
	joined := make(chan error, 1)
	if !a.do(func() { joined <- a.join(p) }) {
		return nil
	}
	select {
	case err = <-joined:
	case <-a.ended:
		return nil
	}
	if err != nil {
		return err
	}
	err = a.obeyed(ctx, p)
	a.release(p)
	if err != nil && ctx.Err() == nil {
		return errors.Join(err, a.store.NoteError(ctx, a.Pool, p.position, err.Error()))
	}
	return nil
}

// open reads the position and makes sure that the location is the archive's.
func (a *Archiver) open(ctx context.Context, item, claim int64) (*part, error) {
	position, err := a.store.Held(ctx, a.Pool, item, claim)
	if err != nil {
		return nil, err
	}
	faultpoint.Hit(archive.Claimed)
	location, err := a.Locations.Open(position.Location)
	if err == nil {
		err = a.marked(ctx, location, position.Archive)
	}
	if err != nil {
		return nil, errors.Join(err, a.store.NoteError(ctx, a.Pool, position, err.Error()))
	}
	if err := a.store.NoteError(ctx, a.Pool, position, ""); err != nil {
		return nil, err
	}
	return &part{
		Partition: position.Of(), position: position, location: location, orders: make(chan order, 1), next: position.Next,
		epoch: position.LeaderEpoch, due: a.Now().Add(max(0, position.RollEvery-position.Since)),
	}, nil
}

// marked writes the marker at the first use of a location, and checks it at every later one.
func (a *Archiver) marked(ctx context.Context, l archive.Location, of archive.Archive) error {
	if of.Marked {
		return archive.CheckMarker(ctx, l, of.Location, of)
	}
	if err := archive.Mark(ctx, l, a.config.Temp, of); err != nil {
		return err
	}
	return a.store.Marked(ctx, a.Pool, of)
}

// obeyed carries out orders until ctx ends or one of them ends the work.
func (a *Archiver) obeyed(ctx context.Context, p *part) error {
	for {
		var o order
		select {
		case <-ctx.Done():
			return nil
		case <-a.ended:
			return nil
		case o = <-p.orders:
		}
		var err error
		switch {
		case o.err != nil:
			return o.err
		case o.fault.Kind != job.FaultNone:
			a.Log.Warn("archive: a partition has stopped", "partition", p.String(), "fault", string(o.fault.Kind), "detail",
				o.fault.Detail)
			return a.store.NoteFault(ctx, a.Pool, p.position, o.fault)
		case o.publish:
			err = a.publish(ctx, p)
		default:
			err = a.flush(p)
		}
		if errors.Is(err, archive.ErrLost) {
			return nil
		}
		if err != nil {
			return err
		}
		at := p.position // the goroutine of Host owns p again behind the next line
		a.do(func() { p.busy, p.buffered = false, 0 })
		if o.publish {
			if err := a.merge(ctx, p, at); errors.Is(err, archive.ErrLost) {
				return nil
			} else if err != nil {
				return err
			}
			a.typeKept(ctx, p, at)
		}
	}
}

// flush writes what is in memory as a row group.
func (a *Archiver) flush(p *part) error {
	a.encode <- struct{}{}
	defer func() { <-a.encode }()
	return p.writer.Flush()
}

// publish completes the file of what was read, stores it and lists it in the manifest.
func (a *Archiver) publish(ctx context.Context, p *part) error {
	f, err := a.finish(p)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Path) }() // in the agent's temporary folder, which goes with the agent
	if !p.caughtUp.IsZero() {
		f.CaughtUp = new(a.Now().Sub(p.caughtUp))
	}
	faultpoint.Hit(archive.Closed)
	if err := a.put(ctx, p.location, p.position, f); err != nil {
		return err
	}
	faultpoint.Hit(archive.Uploaded)
	if err := a.store.Publish(ctx, a.Pool, p.position, f); err != nil {
		return err
	}
	faultpoint.Hit(archive.AfterCommit)
	p.position.Next, p.position.LeaderEpoch = f.Footer.To, f.Footer.LeaderEpoch
	p.due = a.Now().Add(p.position.RollEvery)
	return nil
}

func (a *Archiver) finish(p *part) (archive.Finished, error) {
	a.encode <- struct{}{}
	defer func() { <-a.encode }()
	w := p.writer
	if w == nil { // markers and aborted records only
		var err error
		if w, err = archive.NewWriter(a.config.Temp, p.Partition, p.position.Next); err != nil {
			return archive.Finished{}, err
		}
	}
	p.writer = nil
	return w.Finish(archive.Footer{
		Cluster: p.position.Cluster, Partition: p.Partition, Range: job.Range{From: p.position.Next, To: p.next},
		LeaderEpoch: p.epoch,
	})
}

// putTries is how often a file is stored before its partition starts over.
const putTries = 5

// put stores a file. The marker is looked at before, so that nothing is written to the folder below a mount that is
// gone.
func (a *Archiver) put(ctx context.Context, to archive.Location, at archive.Position, f archive.Finished) error {
	var err error
	for try := 1; try <= putTries; try++ {
		if err = archive.CheckMarker(ctx, to, at.Location, at.Archive); err == nil {
			err = to.Put(ctx, f.Name(), f.Path)
		}
		if err == nil {
			return nil
		}
		if try < putTries && retry.Sleep(ctx, retry.Backoff(try, 100*time.Millisecond, 2*time.Second)) != nil {
			break
		}
	}
	return fmt.Errorf("store %s at %s: %w", f.Name(), at.Location, err)
}

// release gives the partition up and removes what it has written for itself.
func (a *Archiver) release(p *part) {
	left := make(chan struct{})
	if a.do(func() { a.leave(p); close(left) }) {
		select {
		case <-left:
		case <-a.ended:
		}
	}
	if p.writer != nil {
		p.writer.Discard()
	}
}
