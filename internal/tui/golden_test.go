package tui

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

var update = flag.Bool("update", false, "write the golden files")

// opened is a model of this size whose looks a test answers itself.
func opened(t *testing.T, o Options, width, height int) *Model {
	t.Helper()
	now := noon()
	o.Now = func() time.Time { return now }
	m := newModel(commands{ctx: t.Context(), src: nowhere{}, now: o.Now}, o)
	m.Init()
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return m
}

// nowhere is a Source that is never called.
type nowhere struct{}

func (nowhere) Jobs(context.Context) (Overview, error)            { panic("not called") }
func (nowhere) Job(context.Context, job.Name) (Detail, error)     { panic("not called") }
func (nowhere) Events(context.Context, job.Name) ([]Event, error) { panic("not called") }
func (nowhere) Do(context.Context, Act) (ledger.Answer, error)    { panic("not called") }
func (nowhere) Resolve(context.Context, job.Name, ledger.Verb) (job.Ref, error) {
	panic("not called")
}

// answer gives the page what it asked for.
func (m *Model) answer(msg looked) {
	msg.generation, msg.at = m.generation, m.now
	m.take(msg)
}

func (m *Model) pressAll(keys ...string) {
	for _, k := range keys {
		m.press(k, textOf(k))
	}
}

// textOf is the text of a key: that of the keys that print.
func textOf(k string) string {
	switch {
	case k == "space":
		return " "
	case len([]rune(k)) == 1:
		return k
	}
	return ""
}

// watched answers the page of the job once a second, so that it has curves.
func watched(m *Model, seconds int, at func(second int) Detail) {
	start := m.now
	for i := range seconds {
		m.now = start.Add(time.Duration(i) * time.Second)
		d := at(i)
		for v := range d.Status.Versions {
			for p := range d.Status.Versions[v].Partitions {
				d.Status.Versions[v].Partitions[p].SampledAt = m.now
			}
		}
		m.answer(looked{detail: &d})
	}
}

// scenes are all pages, as golden files show them.
func scenes() map[string]func(t *testing.T, l Look, width, height int) *Model {
	on := func(d func() Detail, keys ...string) func(*testing.T, Look, int, int) *Model {
		return func(t *testing.T, l Look, width, height int) *Model {
			m := opened(t, Options{Job: "pageviews", Look: l}, width, height)
			d := d()
			m.answer(looked{detail: &d, events: events()})
			m.pressAll(keys...)
			if m.page == pageEvents {
				m.answer(looked{detail: &d, events: events()})
			}
			return m
		}
	}
	candidateAndLive := func() Detail { return detail(catchingUpVersion(12), liveVersion(12)) }
	return map[string]func(t *testing.T, l Look, width, height int) *Model{
		"overview": func(t *testing.T, l Look, width, height int) *Model {
			m := opened(t, Options{Look: l}, width, height)
			o := fleet()
			m.answer(looked{overview: &o})
			m.pressAll("j", "j", "j")
			return m
		},
		"deployment": on(candidateAndLive),
		"replaying": func(t *testing.T, l Look, width, height int) *Model {
			m := opened(t, Options{Job: "pageviews", Look: l}, width, height)
			watched(m, 90, func(second int) Detail {
				v := replayingVersion(4)
				for i := range v.Partitions {
					*v.Partitions[i].LagRecords = max(0, *v.Partitions[i].LagRecords-int64(second)*4_000)
					*v.Partitions[i].End += int64(second) * 130
				}
				v = version("v2", v.Phase, v.Verdict, v.Reason, v.Partitions...)
				*v.RecordsPerSecond += float64(second%7) * 900
				warned(&v, reason.RetentionUnknown("pageviews/0", time.Time{}, time.Minute), // which the page shows with its deadline
					reason.ReplaySlowed("a1", "replica east is 42s behind (over 10s), and replica west 11s behind"))
				return detail(v, liveVersion(4))
			})
			return m
		},
		"verified": on(func() Detail {
			v := catchingUpVersion(3)
			v.Phase, v.Verdict, v.Reason = job.Verified, job.Ready, "3 partitions within limits"
			d := detail(v, liveVersion(3))
			d.Status.Deployments[0].State = job.Waiting
			d.Status.Warnings = []string{"a transaction of app@orders is open for 3h2m (pid 411): dead rows cannot be removed, and a promote waits for it"}
			return d
		}),
		"first": on(func() Detail { return detail(version("v2", job.Staged, job.Starting, "waiting for an agent")) }),
		"failed": on(func() Detail {
			v := version("v2", job.Failed, job.Unknown, "the version has ended")
			v.Error = "query error: pageviews/3@1200: Conversion Error: Could not convert string 'x' to INT64"
			d := detail(v, liveVersion(2))
			d.Status.Deployments = nil
			return d
		}, "h"),
		"experiment":        on(func() Detail { return experimentDetail(abtest.Running) }, "t", "j"),
		"experiment-paused": on(func() Detail { return experimentDetail(abtest.Paused) }, "t"),
		"layers":            on(func() Detail { return lambdaDetail(true) }, "b", "j"),
		"events":            on(candidateAndLive, "e"),
		"help":              on(candidateAndLive, "?"),
		"confirm":           on(candidateAndLive, "l", "l", "p", "p", "a", "g", "e"),
	}
}

func TestPagesLookAsTheyShould(t *testing.T) {
	sizes := [][2]int{{80, 24}, {120, 40}, {200, 60}}
	for name, scene := range scenes() {
		for _, size := range sizes {
			for look, l := range map[string]Look{"plain": {}, "colour": {Color: true}} {
				t.Run(fmt.Sprintf("%s/%dx%d/%s", name, size[0], size[1], look), func(t *testing.T) {
					m := scene(t, l, size[0], size[1])
					frame := m.frame()
					fits(t, frame, size[0], size[1])
					golden(t, fmt.Sprintf("%s-%dx%d-%s", name, size[0], size[1], look), strings.Join(frame, "\n")+"\n")
				})
			}
		}
	}
}

func TestColourChangesNoLetter(t *testing.T) {
	for name, scene := range scenes() {
		bare := strings.Join(scene(t, Look{}, 120, 40).frame(), "\n")
		for _, l := range []Look{{Color: true}, {Color: true, Light: true}} {
			coloured := strings.Join(scene(t, l, 120, 40).frame(), "\n")
			if diff := cmp.Diff(bare, ansi.Strip(coloured)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if !strings.Contains(coloured, "\x1b[") {
				t.Errorf("%s has no colour", name)
			}
		}
		if strings.ContainsRune(bare, 0x1b) {
			t.Errorf("%s has control codes without colour", name)
		}
	}
}

func TestASCIIIsEnough(t *testing.T) {
	for name, scene := range scenes() {
		frame := strings.Join(scene(t, Look{ASCII: true}, 100, 30).frame(), "\n")
		frame = strings.ReplaceAll(strings.ReplaceAll(frame, "→", ""), "データ基盤 🚀", "") // of the data
		for _, r := range frame {
			if r > 0x7e {
				t.Errorf("%s shows %q", name, r)
				break
			}
		}
	}
}

// fits fails when a frame is larger than its window.
func fits(t *testing.T, frame []string, width, height int) {
	t.Helper()
	if len(frame) > height {
		t.Errorf("%d lines in a window of %d", len(frame), height)
	}
	for i, l := range frame {
		if cells(l) > width {
			t.Errorf("line %d is %d wide in a window of %d: %q", i, cells(l), width, l)
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // read by everybody
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
