package hooks_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/hooks"
	"github.com/kappactl/kappactl/internal/job"
)

func TestASlowHookKeepsOnlyItselfWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	open := make(chan struct{})
	arrived := make(chan struct{}, 100)
	slow := newReceiver(t, func(_ int, _ http.ResponseWriter, req *http.Request) {
		arrived <- struct{}{}
		select {
		case <-open:
		case <-req.Context().Done():
		}
	})
	quick := newReceiver(t, func(int, http.ResponseWriter, *http.Request) {})
	w.run("a", hooks.Config{Hooks: []hooks.Hook{{Name: "slow", URL: slow.URL}, {Name: "quick", URL: quick.URL}}, AtOnce: 2})
	const events = 7
	for i := range events {
		w.event("retire", `{}`)
		if i < 2 {
			<-arrived // from the second on, the slow hook is at its limit
		}
	}
	for range events {
		if o := w.note(); o.Hook != "quick" || !o.OK {
			t.Errorf("%+v", o)
		}
	}
	w.await("deliveries in hand", `SELECT count(*) FROM kappactl.delivery WHERE hook = 'slow' AND owner IS NOT NULL`, 2)
	close(open) // and the rest of its own follow
	for range events {
		if o := w.note(); o.Hook != "slow" || !o.OK {
			t.Errorf("%+v", o)
		}
	}
}

func TestAHookThatWasTakenOutStartsAnewWhenItComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReceiver(t, func(int, http.ResponseWriter, *http.Request) {})
	web := hooks.Config{Hooks: []hooks.Hook{{Name: "web", URL: r.URL}}}
	w.run("a", web)()
	w.sql(`UPDATE kappactl.hook SET seen_at = clock_timestamp() - interval '11 minutes'`) // its agents were stopped long ago
	w.event("retire", `{}`)                                                               // while no agent was alive
	stop := w.run("a", web)
	if o := w.note(); !o.OK {
		t.Errorf("what happened while no agent was alive is told: %+v", o)
	}
	w.await("the hook is seen", `SELECT count(*) FROM kappactl.hook WHERE seen_at > clock_timestamp() - interval '5 minutes'`, 1)
	stop()

	w.event("retire", `{}`)
	w.sql(`INSERT INTO kappactl.delivery (event, hook, told) VALUES (2, 'web', 'retire')`)
	w.sql(`UPDATE kappactl.hook SET seen_at = clock_timestamp() - interval '9 minutes'`)
	other := hooks.Config{Hooks: []hooks.Hook{{Name: "other", Command: []string{"true"}}}}
	stop = w.run("b", other)
	w.event("retire", `{}`)
	if o := w.note(); o.Hook != "other" {
		t.Errorf("%+v", o)
	}
	w.await("hooks, so soon", `SELECT count(*) FROM kappactl.hook`, 2)
	stop()
	w.sql(`UPDATE kappactl.hook SET seen_at = clock_timestamp() - interval '11 minutes' WHERE name = 'web'`)
	w.run("b", hooks.Config{}) // an agent without any forgets too
	w.await("the hook is forgotten", `SELECT count(*) FROM kappactl.hook WHERE name = 'web'`, 0)
	w.await("what it was still to be told", `SELECT count(*) FROM kappactl.delivery WHERE hook = 'web' AND event = 2 AND state = 'given up'`, 1)

	w.event("retire", `{}`)
	stop = w.run("a", web)
	w.await("the hook is known again", `SELECT count(*) FROM kappactl.hook WHERE name = 'web'`, 1)
	w.event("promoted", `{"from": 1}`)
	if o := w.note(); !o.OK {
		t.Errorf("%+v", o)
	}
	stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.bodies) != 2 || !strings.Contains(r.bodies[1], `"after_promote"`) {
		t.Errorf("told of what happened while it was out: %v", r.bodies)
	}
}

func TestAgentsThatHaveDifferentHooksAreToldApart(t *testing.T) {
	hook := func(name string, change ...func(*hooks.Hook)) hooks.Hook {
		h := hooks.Hook{Name: name, URL: "https://chat.example.com/secret", On: []job.HookEvent{job.HookStage, job.HookRetire}, Timeout: time.Second}
		for _, f := range change {
			f(&h)
		}
		return h
	}
	turned := hook("chat", func(h *hooks.Hook) { h.On = []job.HookEvent{job.HookRetire, job.HookStage} })
	elsewhere := hook("chat", func(h *hooks.Hook) { h.URL = "https://chat.example.com/other" })
	same := hooks.Differences(map[string]map[string]string{"a": hooks.Digests([]hooks.Hook{hook("chat")}), "b": hooks.Digests([]hooks.Hook{turned})})
	if same != nil || strings.Contains(hooks.Digests([]hooks.Hook{hook("chat")})["chat"], "secret") {
		t.Errorf("%v", same)
	}
	got := hooks.Differences(map[string]map[string]string{
		"a": hooks.Digests([]hooks.Hook{hook("chat"), hook("gate")}), "b": hooks.Digests([]hooks.Hook{elsewhere}), "c": {},
	})
	want := []string{"chat is missing on c", "gate is missing on b, c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = hooks.Differences(map[string]map[string]string{"a": hooks.Digests([]hooks.Hook{hook("chat")}), "b": hooks.Digests([]hooks.Hook{elsewhere})})
	if diff := cmp.Diff([]string{"chat differs on a, b"}, got); diff != "" {
		t.Error(diff)
	}
}
