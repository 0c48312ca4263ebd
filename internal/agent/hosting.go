package agent

import (
	"context"
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// claimFirst bounds how many items of a kind one poll claims, so that several agents share them. As long as there are
// more, each poll may claim twice as many as the previous one, up to claimMost. Agents that double in step still share
// evenly, and a thousand items are claimed within about ten polls.
const (
	claimFirst = 4
	claimMost  = 256
)

// claimNext returns how many items the next poll may claim, after one that was allowed limit items and got so many.
func claimNext(limit, got int) int {
	if got < limit {
		return claimFirst
	}
	return min(2*limit, claimMost)
}

// hosting is the set of running tasks of an agent. The goroutine of host owns it.
type hosting struct {
	a        *Agent
	tasks    map[key]*task
	backoffs map[key]backoff // of tasks that ended with an error
	quiet    *quiet
	renewed  time.Time      // when the leases were last renewed
	eager    time.Time      // poll frequently until then
	newest   []int64        // highest id of each kind of work, at the last glance
	limits   map[string]int // items that the next poll may claim, by Work.Name
}

func newHosting(a *Agent) *hosting {
	return &hosting{
		a: a, tasks: map[key]*task{}, backoffs: map[key]backoff{}, quiet: newQuiet(a.Log, a.Now), renewed: a.Now(),
		newest: make([]int64, len(a.Work)), limits: map[string]int{},
	}
}

// look starts and ends tasks to match the available work.
func (h *hosting) look(ctx context.Context) error {
	// A stop must not interrupt this: a claim of unknown outcome would block its row for a whole lease.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(h.a.config.Lease/3, time.Second))
	defer cancel()
	if err := h.reap(limited); err != nil {
		return err
	}
	if err := h.renew(limited); err != nil {
		return err
	}
	if err := h.versions(ctx, limited); err != nil {
		return err
	}
	return h.claimAll(ctx, limited)
}

// claimAll claims items of the kinds of work that have any.
func (h *hosting) claimAll(ctx, limited context.Context) error {
	but := make(map[string][]int64, len(h.a.Work))
	for _, w := range h.a.Work {
		but[w.Name] = h.backingOff(w.Name)
	}
	open, err := readOpen(limited, h.a.Pool, h.a.Work, but)
	if err != nil {
		return err
	}
	for i, w := range h.a.Work {
		if !open[i] {
			h.limits[w.Name] = claimFirst
			continue
		}
		if err := h.claim(ctx, limited, w, but[w.Name]); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for d, or until ctx ends. With glances it also ends soon after a new request.
func (h *hosting) pause(ctx context.Context, d time.Duration, glances bool) {
	// also bounds an unanswered glance: the next poll has to renew leases
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	tick := time.NewTicker(glanceEvery)
	defer tick.Stop()
	for {
		select {
		case <-limited.Done():
			return
		case <-tick.C:
			if glances && h.glance(limited) {
				return
			}
		}
	}
}

// glance reports whether there is a new request since the last glance. The next poll reports an unreachable database.
func (h *hosting) glance(ctx context.Context) bool {
	now, err := readNewest(ctx, h.a.Pool, h.a.Work)
	if err != nil || slices.Equal(now, h.newest) {
		return false
	}
	h.newest = now
	return true
}

// reap removes the tasks that have ended and releases their leases.
func (h *hosting) reap(ctx context.Context) error {
	for k, t := range h.tasks {
		if !t.ended() {
			continue
		}
		if i := slices.IndexFunc(h.a.Work, func(w Work) bool { return w.Name == k.kind }); i >= 0 {
			if err := release(ctx, h.a.Pool, h.a.Work[i], h.a.config.ID, k.id); err != nil {
				return err
			}
		}
		h.over(k, t)
	}
	return nil
}

// renew renews the leases when a third of their time is over, and ends the tasks whose lease was lost. If renewal
// failed for a whole lease, other agents may own them, and all leased tasks end. (Their later writes are fenced off.)
func (h *hosting) renew(ctx context.Context) error {
	now := h.a.Now()
	if now.Sub(h.renewed) < h.a.config.Lease/3 {
		return nil
	}
	tasks := map[string][]int64{}
	for k := range h.tasks {
		tasks[k.kind] = append(tasks[k.kind], k.id)
	}
	held, err := renewAll(ctx, h.a.Pool, h.a.Work, tasks, h.a.config.ID, h.a.config.Lease)
	if err != nil {
		if now.Sub(h.renewed) >= h.a.config.Lease {
			h.keepOnly(nil)
		}
		return err
	}
	h.renewed = now
	h.keepOnly(held)
	if err := h.unlock(ctx); err != nil {
		h.quiet.failed("end what silent agents left open", err)
	}
	return nil
}

// keepOnly ends the tasks of leased items that are not in held.
func (h *hosting) keepOnly(held map[key]bool) {
	for k, t := range h.tasks {
		if k.kind != "" && !held[k] {
			t.cancel()
		}
	}
}

// unlock terminates transactions left open by agents without a heartbeat, because their successors need the locks. An
// agent that is alive after all retries.
func (h *hosting) unlock(ctx context.Context) error {
	within := max(h.a.config.Lease, missedHeartbeats*h.a.config.Heartbeat)
	silent, err := silentAgents(ctx, h.a.Pool, h.a.config.ID, within)
	if err != nil || len(silent) == 0 {
		return err
	}
	n, err := pg.EndStuck(ctx, h.a.Pool, silent, within)
	if n > 0 {
		h.a.Log.Warn("ended transactions of agents without a heartbeat", "transactions", n)
	}
	return err
}

// versions keeps a runner for each version that has work. The runners agree on which of them replay at once.
func (h *hosting) versions(ctx, limited context.Context) error {
	found, err := readVersions(limited, h.a.Pool, h.a.config.Dialect)
	if err != nil {
		return err
	}
	wanted := map[key]bool{}
	for _, v := range found {
		wanted[key{ref: v.ref()}] = true
	}
	for k, t := range h.tasks {
		if k.kind == "" && !wanted[k] {
			t.cancel()
		}
	}
	for _, v := range found {
		h.follow(ctx, v.ref())
	}
	return nil
}

// follow starts the runner of a version unless it runs or backs off.
func (h *hosting) follow(ctx context.Context, ref job.Ref) {
	k := key{ref: ref}
	if _, running := h.tasks[k]; !running && !h.backsOff(k) {
		h.start(ctx, k, func(ctx context.Context) error { return h.a.Runner.Run(ctx, ref) })
	}
}

// claim claims items of a kind that no agent holds, except those in but, and starts to work on them.
func (h *hosting) claim(ctx, limited context.Context, w Work, but []int64) error {
	limit := max(h.limits[w.Name], claimFirst)
	items, err := claim(limited, h.a.Pool, w, h.a.config.ID, h.a.config.Lease, limit, but)
	if err != nil {
		return err
	}
	h.limits[w.Name] = claimNext(limit, len(items))
	if w.Eager && len(items) > 0 {
		h.eager = h.a.Now().Add(eagerFor)
	}
	for _, i := range items {
		k := key{kind: w.Name, id: i.ID}
		if old, ok := h.tasks[k]; ok { // of an older claim of the same row, which was lost
			old.cancel()
			<-old.done
		}
		h.start(ctx, k, func(ctx context.Context) error { return w.Run(ctx, i.ID, i.Claim) })
	}
	return nil
}
