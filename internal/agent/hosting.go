package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// claimAtOnce bounds how many deployments one look claims, so that several agents share them.
const claimAtOnce = 4

// hosting is the tasks of an agent. The goroutine of host owns it.
type hosting struct {
	a           *Agent
	runners     map[job.Ref]*task
	deployments map[int64]*task
	requests    map[int64]*task
	rests       map[string]rest // of tasks that ended with an error
	quiet       *quiet
	renewed     time.Time // when the leases were last prolonged
	eager       time.Time // looks are frequent until then
	newest      asked     // at the last glance
}

// task is one goroutine at work.
type task struct {
	cancel context.CancelFunc
	done   chan struct{}
	began  time.Time
	err    error // set before done is closed
}

func (t *task) ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// rest is when a task that ended with an error may begin again.
type rest struct {
	until    time.Time
	failures int
}

const (
	restFirst = 500 * time.Millisecond
	restMost  = 30 * time.Second
	restReset = time.Minute // a task that ran this long begins afresh
)

func (h *hosting) all() map[string]*task {
	out := map[string]*task{}
	for ref, t := range h.runners {
		out["version "+ref.String()] = t
	}
	for id, t := range h.deployments {
		out[fmt.Sprintf("deployment %d", id)] = t
	}
	for id, t := range h.requests {
		out[fmt.Sprintf("request %d", id)] = t
	}
	return out
}

// look compares the work that there is with the tasks at hand.
func (h *hosting) look(ctx context.Context) error {
	// Not cut short by a stop: a claim in doubt would keep its row from others for a whole lease.
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
	if err := h.claim(ctx, limited); err != nil {
		return err
	}
	return nil
}

// pause waits for d, or until ctx ends. With glances it also ends soon after something new was asked for.
func (h *hosting) pause(ctx context.Context, d time.Duration, glances bool) {
	limited, cancel := context.WithTimeout(ctx, d) // also of a glance that is not answered: leases are renewed by looks
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

// glance says whether something was asked for since the last one. That the database is away shows at the next look.
func (h *hosting) glance(ctx context.Context) bool {
	now, err := readAsked(ctx, h.a.Pool)
	if err != nil || now == h.newest {
		return false
	}
	h.newest = now
	return true
}

// begin starts f unless it rests after an error.
func (h *hosting) begin(ctx context.Context, name string, f func(context.Context) error) *task {
	if h.a.Now().Before(h.rests[name].until) {
		return nil
	}
	own, cancel := context.WithCancel(ctx)
	t := &task{cancel: cancel, done: make(chan struct{}), began: h.a.Now()}
	go func() {
		defer close(t.done)
		defer cancel()
		t.err = f(own)
	}()
	return t
}

// over notes how a task ended, and says whether it may begin again at once.
func (h *hosting) over(name string, t *task) {
	now := h.a.Now()
	if t.err == nil {
		delete(h.rests, name)
		return
	}
	r := h.rests[name]
	if now.Sub(t.began) >= restReset {
		r.failures = 0
	}
	pause := min(restFirst<<min(r.failures, 10), restMost)
	r.failures++
	r.until = now.Add(pause)
	h.rests[name] = r
	h.quiet.failed(name, t.err, "again_in", pause.String())
}

// reap takes the tasks that ended out of the books and gives up their leases.
func (h *hosting) reap(ctx context.Context) error {
	for ref, t := range h.runners {
		if t.ended() {
			h.over("version "+ref.String(), t)
			delete(h.runners, ref)
		}
	}
	for id, t := range h.deployments {
		if t.ended() {
			if err := releaseDeployment(ctx, h.a.Pool, h.a.config.ID, id); err != nil {
				return err
			}
			h.over(fmt.Sprintf("deployment %d", id), t)
			delete(h.deployments, id)
		}
	}
	for id, t := range h.requests {
		if t.ended() {
			if err := releaseRequest(ctx, h.a.Pool, h.a.config.ID, id); err != nil {
				return err
			}
			h.over(fmt.Sprintf("request %d", id), t)
			delete(h.requests, id)
		}
	}
	return nil
}

// renew prolongs the leases when a third of them is over, and ends the tasks whose lease is gone. When they could not be
// prolonged for a whole lease, others may own them: everything under a lease ends. (What it would still write is fenced.)
func (h *hosting) renew(ctx context.Context) error {
	now := h.a.Now()
	if now.Sub(h.renewed) < h.a.config.Lease/3 {
		return nil
	}
	deployments, requests, err := renewAll(ctx, h.a.Pool, h.a.config.ID, h.a.config.Lease)
	if err != nil {
		if now.Sub(h.renewed) >= h.a.config.Lease {
			end(h.deployments, nil)
			end(h.requests, nil)
		}
		return err
	}
	h.renewed = now
	end(h.deployments, deployments)
	end(h.requests, requests)
	if err := h.unlock(ctx); err != nil {
		h.quiet.failed("end what silent agents left open", err)
	}
	return nil
}

// unlock ends the transactions in which agents that give no sign of life stand still: what they had locked is wanted by those who took
// over. One that lives after all tries again.
func (h *hosting) unlock(ctx context.Context) error {
	within := max(h.a.config.Lease, aliveWithin*h.a.config.Heartbeat)
	silent, err := silentAgents(ctx, h.a.Pool, h.a.config.ID, within)
	if err != nil || len(silent) == 0 {
		return err
	}
	n, err := pg.EndStuck(ctx, h.a.Pool, silent, within)
	if n > 0 {
		h.a.Log.Warn("transactions of agents that give no sign of life were ended", "transactions", n)
	}
	return err
}

// end cancels the tasks that are not in kept.
func end(tasks map[int64]*task, kept []int64) {
	for id, t := range tasks {
		if !slices.Contains(kept, id) {
			t.cancel()
		}
	}
}

// versions keeps a runner for each version that has work. Which of them replay at once is the runners' to agree on.
func (h *hosting) versions(ctx, limited context.Context) error {
	found, err := readVersions(limited, h.a.Pool, h.a.config.Dialect)
	if err != nil {
		return err
	}
	wanted := map[job.Ref]bool{}
	for _, v := range found {
		wanted[v.ref()] = true
	}
	for ref, t := range h.runners {
		if !wanted[ref] {
			t.cancel()
		}
	}
	for _, v := range found {
		ref := v.ref()
		if _, running := h.runners[ref]; running || !wanted[ref] {
			continue
		}
		t := h.begin(ctx, "version "+ref.String(), func(ctx context.Context) error { return h.a.Runner.Run(ctx, ref) })
		if t != nil {
			h.runners[ref] = t
		}
	}
	return nil
}

// claim takes deployments and requests that nobody holds.
func (h *hosting) claim(ctx, limited context.Context) error {
	deployments, err := claimDeployments(limited, h.a.Pool, h.a.config.ID, h.a.config.Lease, claimAtOnce, h.resting("deployment"))
	if err != nil {
		return err
	}
	if len(deployments) > 0 {
		h.eager = h.a.Now().Add(eagerFor)
	}
	for _, c := range deployments {
		h.take(ctx, h.deployments, "deployment", c, h.a.Controller.Control)
	}
	requests, err := claimRequests(limited, h.a.Pool, h.a.config.ID, h.a.config.Lease, claimAtOnce, h.resting("request"))
	if err != nil {
		return err
	}
	for _, c := range requests {
		h.take(ctx, h.requests, "request", c, h.a.Controller.Answer)
	}
	return nil
}

// take begins the work on a row just claimed. A task under an older claim of the same row has lost it.
func (h *hosting) take(ctx context.Context, tasks map[int64]*task, kind string, c claimed, f func(ctx context.Context, id, claim int64) error) {
	if old, ok := tasks[c.ID]; ok {
		old.cancel()
		<-old.done
	}
	delete(h.rests, fmt.Sprintf("%s %d", kind, c.ID))
	tasks[c.ID] = h.begin(ctx, kind, func(ctx context.Context) error { return f(ctx, c.ID, c.Claim) })
}

// resting are the ids of a kind that ended with an error a moment ago; others may take them meanwhile.
func (h *hosting) resting(kind string) []int64 {
	now := h.a.Now()
	out := []int64{}
	for name, r := range h.rests {
		var id int64
		if n, err := fmt.Sscanf(name, kind+" %d", &id); n == 1 && err == nil && now.Before(r.until) {
			out = append(out, id)
		}
	}
	return out
}
