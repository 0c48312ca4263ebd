package programs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
)

// holding is an instance under one claim of its row. The goroutine of Run owns it.
type holding struct {
	*Runner
	id, row int64

	claim int64 // of the positions
	owned []job.Owned
	group string // name of the version's consumer group
	ends  int    // consecutive ends of processes that did not run for long
}

// once runs one process: from taking the positions over to its end, and through the pause after it.
func (h *holding) once(ctx context.Context, i *item) (err error) {
	if i.Faulty || i.replaying() && i.Read || i.Partitions == 0 {
		h.rest(ctx) // for a person, for the next phase, or for a partition
		return nil
	}
	share, of := i.share()
	if h.claim, h.owned, err = h.Positions.Take(ctx, h.Pool, i.ref, h.Agent, h.config.Lease, share, of); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.free(ctx, i)) }()
	if sound, err := h.sound(ctx, i); err != nil || !sound {
		return err
	}
	if err := h.grant(ctx, i); err != nil {
		return fmt.Errorf("grant the table of %s: %w", i.ref, err)
	}
	if err := h.places(ctx, i); err != nil {
		return err
	}
	log := h.Log.With("job", string(i.ref.Job), "version", i.ref.Number.String(), "instance", i.instance)
	p, dir, err := h.begin(i, log)
	if err != nil { // it cannot be started: as if it had ended at once
		return h.ended(ctx, i, err.Error(), "")
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := note(ctx, h.Pool, sqlStarted, h.id, h.row); err != nil {
		p.stop(i.spec.Program.Grace)
		return err
	}
	log.Info("program begins", "mode", modeOf(i), "claim", h.claim, "pid", p.cmd.Process.Pid)
	why, err := h.watch(ctx, i, p)
	if why != "" || err != nil {
		log.Info("program is stopped", "reason", why, "error", err)
		p.stop(i.spec.Program.Grace)
		log.Info("program ended", "how", p.how)
		return errors.Join(err, note(context.WithoutCancel(ctx), h.Pool, sqlStopped, h.id, h.row))
	}
	return h.judge(ctx, i, p, log)
}

// begin starts the process in a working folder of its own.
func (h *holding) begin(i *item, log *slog.Logger) (*process, string, error) {
	dir, err := os.MkdirTemp(h.config.Temp, fmt.Sprintf("program-%s-%s-%d-*", i.ref.Job, i.ref.Number, i.instance))
	if err != nil {
		return nil, "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, "", err
	}
	p, err := start(i.spec.Program.Command, h.environment(i, h.group, h.claim, h.owned), dir, log, h.Now())
	if err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	return p, dir, nil
}

// free gives the positions up; the process has ended.
func (h *holding) free(ctx context.Context, i *item) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return h.Positions.Free(ctx, h.Pool, i.ref, h.Agent, h.claim)
}

// sound reports whether the log still holds what the instance reads next, and notes a fault when it does not.
func (h *holding) sound(ctx context.Context, i *item) (bool, error) {
	facts, err := h.Brokers.Offsets(ctx, i.spec.Source.Topics)
	if err != nil {
		return false, err
	}
	sound := true
	for _, o := range h.owned {
		for _, f := range facts {
			if f.Topic != o.Topic || f.ID != o.ID || f.Err != nil {
				continue
			}
			var fault job.Fault
			switch {
			case f.TopicID != o.TopicID:
				fault = job.Fault{Kind: job.FaultRecreated, Detail: fmt.Sprintf("its id was %s and is %s", o.TopicID, f.TopicID)}
			case f.Start > o.Next:
				fault = job.Fault{
					Kind: job.FaultGap, From: o.Next, To: f.Start,
					Detail: fmt.Sprintf("the log begins at offset %d, the version is at %d", f.Start, o.Next),
				}
			default:
				continue
			}
			sound = false
			if err := h.Positions.Fault(ctx, h.Pool, i.ref, h.Agent, h.claim, o.Partition, fault); err != nil {
				return false, err
			}
		}
	}
	return sound, nil
}

// places gives the consumer group the positions of partitions of which it has none.
func (h *holding) places(ctx context.Context, i *item) error {
	if h.group == "" {
		of, err := pg.Identity(ctx, h.Pool)
		if err != nil {
			return err
		}
		h.group = i.ref.Group(of)
	}
	if !i.group() {
		return nil
	}
	known, err := h.Brokers.GroupOffsets(ctx, h.group)
	if err != nil {
		return err
	}
	missing := map[job.Partition]int64{}
	for _, o := range h.owned {
		if _, there := known[o.String()]; !there {
			missing[o.Partition] = o.Next
		}
	}
	switch {
	case len(missing) > 0:
		return h.Brokers.CommitGroup(ctx, h.group, missing)
	case len(h.owned) == 0 && len(known) < i.Partitions:
		return fmt.Errorf("the first instance of %s has not given its group the start offsets yet", i.ref)
	}
	return nil
}

// watch looks after a running process until it ends by itself, which is no reason, or until there is a reason to stop
// it.
func (h *holding) watch(ctx context.Context, was *item, p *process) (why string, err error) {
	tick := time.NewTicker(h.config.Look)
	defer tick.Stop()
	renewed, quiet, calm := h.Now(), false, false
	for {
		select {
		case <-p.done:
			return "", h.follow(ctx, was)
		case <-ctx.Done():
			return "the agent gives it up", nil
		case <-tick.C:
		}
		if h.Now().Sub(renewed) >= h.config.Lease/3 {
			renewed = h.Now()
			n, err := h.Positions.Keep(ctx, h.Pool, was.ref, h.Agent, h.claim, h.config.Lease)
			switch {
			case pg.Unreachable(err): // the process will find out by itself
				continue
			case err != nil:
				return "", err
			case n < len(h.owned):
				return "another process has taken over", nil
			}
		}
		now, err := look(ctx, h.Pool, h.id)
		switch {
		case pg.Unreachable(err) || ctx.Err() != nil:
			continue
		case err != nil:
			return "the instance was removed", nil
		}
		if why := changed(was, now); why != "" {
			return why, nil
		}
		if err := h.follow(ctx, was); err != nil && ctx.Err() == nil {
			h.Log.Warn("offsets of the group are not known", "job", string(was.ref.Job), "error", err)
		}
		if !quiet && h.Now().Sub(p.began) >= h.config.First { // it runs: how the one before ended is over
			quiet = true
			if err := h.Positions.Trouble(ctx, h.Pool, was.ref, h.Agent, reason.Reason{}); err != nil && !pg.Unreachable(err) {
				return "", err
			}
		}
		if !calm && h.Now().Sub(p.began) >= settled {
			calm, h.ends = true, 0
			if err := h.calm(ctx, was); err != nil && !pg.Unreachable(err) {
				return "", err
			}
		}
	}
}

// changed is why a process that was started for was does not fit what is wanted now; empty when it does.
func changed(was, now *item) string {
	switch {
	case !now.wanted:
		return "it is not wanted any more"
	case was.replaying() && !now.replaying():
		return "the replay is over"
	case was.claim != now.claim || was.owner != now.owner:
		return "another agent has taken it over"
	case was.Partitions != now.Partitions || was.spec.Program.Instances != now.spec.Program.Instances:
		return "its share of the partitions is another one"
	case was.replaying() && was.Ends != now.Ends:
		return "the replay goes on further"
	case now.Faulty:
		return "a partition is stopped by a fault"
	}
	return ""
}

// follow moves the positions to what the program committed to its group.
func (h *holding) follow(ctx context.Context, i *item) error {
	if !i.group() || len(h.owned) == 0 {
		return nil
	}
	known, err := h.Brokers.GroupOffsets(ctx, h.group)
	if err != nil {
		return err
	}
	next := map[job.Partition]int64{}
	for _, o := range h.owned {
		if n, there := known[o.String()]; there {
			next[o.Partition] = n
		}
	}
	return h.Positions.MoveTo(ctx, h.Pool, i.ref, h.Agent, h.claim, next)
}

// calm takes back what was noted of ends: the program runs.
func (h *holding) calm(ctx context.Context, i *item) error {
	return errors.Join(
		h.Positions.Fault(ctx, h.Pool, i.ref, h.Agent, h.claim, job.Partition{}, job.Fault{}),
		h.Positions.Trouble(ctx, h.Pool, i.ref, h.Agent, reason.Reason{}),
		note(ctx, h.Pool, sqlForget, h.id, h.row),
	)
}

// judge decides what the end of a process means: the end of a replay, or a failure.
func (h *holding) judge(ctx context.Context, i *item, p *process, log *slog.Logger) error {
	if h.Now().Sub(p.began) >= settled {
		h.ends = 0
	}
	if p.ok && i.replaying() {
		now, err := look(ctx, h.Pool, h.id)
		if err != nil {
			return err
		}
		if now.Read || changed(i, now) != "" {
			log.Info("program has read to the end of the replay")
			return errors.Join(h.calm(ctx, i), note(ctx, h.Pool, sqlStopped, h.id, h.row))
		}
	}
	log.Warn("program ended by itself", "how", p.how)
	return h.ended(ctx, i, p.how, p.words())
}

// ended notes that a process ended by itself and waits before the next one.
func (h *holding) ended(ctx context.Context, i *item, how, words string) error {
	h.ends++
	n, err := noteEnd(ctx, h.Pool, h.id, h.row, how, words, loopWithin)
	if err != nil {
		return err
	}
	last := strings.ReplaceAll(words, "\n", " | ")
	if n >= loopEnds {
		err := h.Positions.Fault(ctx, h.Pool, i.ref, h.Agent, h.claim, job.Partition{}, job.Fault{
			Kind: job.FaultProgram, Detail: fmt.Sprintf("%d times within %s, the last time with %s: %s", n,
				job.FormatDuration(loopWithin), how, last),
		})
		if err != nil {
			return err
		}
	}
	why := reason.ProgramFails(h.Agent, i.instance, how, last)
	return h.pause(ctx, i, why, n >= loopEnds, retry.Backoff(h.ends, h.config.First, h.config.Most))
}

// pause keeps the positions while the next start waits. A person's resume ends it.
func (h *holding) pause(ctx context.Context, i *item, why reason.Reason, looping bool, d time.Duration) error {
	for until := h.Now().Add(d); ctx.Err() == nil && h.Now().Before(until); h.rest(ctx) {
		if err := h.Positions.Trouble(ctx, h.Pool, i.ref, h.Agent, why); err != nil {
			return err
		}
		if _, err := h.Positions.Keep(ctx, h.Pool, i.ref, h.Agent, h.claim, h.config.Lease); err != nil {
			return err
		}
		now, err := look(ctx, h.Pool, h.id)
		switch {
		case err != nil:
			return err
		case looping && !now.Looping:
			h.ends = 0
			return note(ctx, h.Pool, sqlForget, h.id, h.row)
		case changed(i, now) != "":
			return nil
		}
	}
	return nil
}
