package tui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/kappactl/kappactl/internal/job"
)

// terminal collects what the program draws and lets a test wait for it. Guarded by mu.
type terminal struct {
	mu    sync.Mutex
	drawn bytes.Buffer
	more  chan struct{}
}

func newTerminal() *terminal { return &terminal{more: make(chan struct{}, 1)} }

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case t.more <- struct{}{}:
	default:
	}
	return t.drawn.Write(p)
}

func (t *terminal) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.drawn.String()
}

// await waits until the program has drawn something with these words.
func (t *terminal) await(ctx context.Context, words string) bool {
	for !strings.Contains(t.text(), words) {
		select {
		case <-t.more:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// run starts the program on a terminal of nobody's; keys are what is typed.
func run(ctx context.Context, t *testing.T, src Source, name job.Name) (screen *terminal, keys io.Writer, ended chan result) {
	t.Helper()
	in, keys := io.Pipe()
	screen, ended = newTerminal(), make(chan result, 1)
	go func() {
		outcome, err := Run(ctx, src, Options{Job: name, In: in, Out: screen, Now: noon})
		ended <- result{outcome, err}
	}()
	t.Cleanup(func() { _ = in.Close() })
	return screen, keys, ended
}

type result struct {
	Outcome
	err error
}

// restored says that the last word on the alternate screen, and on the cursor, was to switch back.
func (t *terminal) restored() bool {
	s := t.text()
	undone := func(on, off string) bool { return strings.LastIndex(s, off) >= strings.LastIndex(s, on) }
	return undone("\x1b[?1049h", "\x1b[?1049l") && undone("\x1b[?25l", "\x1b[?25h")
}

func TestRunDrawsAndLeavesWithQ(t *testing.T) {
	screen, keys, ended := run(t.Context(), t, &scripted{details: []func() (Detail, error){with(job.CatchingUp, job.RollingOut, nil)}}, "pageviews")
	if !screen.await(t.Context(), "1049h") {
		t.Fatal("nothing drawn")
	}
	if _, err := io.WriteString(keys, "q"); err != nil {
		t.Fatal(err)
	}
	r := <-ended
	if r.err != nil || r.Code != 0 || !screen.restored() {
		t.Errorf("%+v; restored %t", r, screen.restored())
	}
}

func TestRunEndsWithTheDeployment(t *testing.T) {
	src := &scripted{details: []func() (Detail, error){with(job.CatchingUp, job.RollingOut, nil), refused, with(job.Failed, job.DeployFailed, ptr(8))}}
	screen, _, ended := run(t.Context(), t, src, "pageviews")
	r := <-ended
	if r.err != nil || r.Code != job.ExitUnhealthy || len(r.Summary) != 5 || !screen.restored() {
		t.Errorf("%+v; restored %t", r, screen.restored())
	}
}

func TestRunRestoresTheTerminalWhenItsContextEnds(t *testing.T) {
	cause := errors.New("terminated")
	ctx, cancel := context.WithCancelCause(t.Context())
	screen, _, ended := run(ctx, t, &scripted{details: []func() (Detail, error){with(job.CatchingUp, job.RollingOut, nil)}}, "pageviews")
	if !screen.await(t.Context(), "1049h") {
		t.Fatal("nothing drawn")
	}
	cancel(cause)
	if r := <-ended; !errors.Is(r.err, cause) || !screen.restored() {
		t.Errorf("%+v; restored %t", r, screen.restored())
	}
}

func TestRunRestoresTheTerminalAfterAPanic(t *testing.T) {
	src := &scripted{details: []func() (Detail, error){func() (Detail, error) { panic("broken source") }}}
	screen, _, ended := run(t.Context(), t, src, "pageviews")
	r := <-ended
	var fault *FaultError
	if !errors.As(r.err, &fault) || !strings.Contains(fault.Stack, "scripted") || !screen.restored() {
		t.Errorf("%+v; restored %t", r, screen.restored())
	}
	if strings.Contains(screen.text(), "goroutine") {
		t.Error("a stack trace on the screen")
	}
}

// broken is a model that panics where it is told to.
type broken struct{ inView, inUpdate bool }

func (b broken) Init() tea.Cmd { return nil }

func (b broken) Update(tea.Msg) (tea.Model, tea.Cmd) {
	if b.inUpdate {
		panic("broken update")
	}
	return b, nil
}

func (b broken) View() string {
	if b.inView {
		panic("broken view")
	}
	return ""
}

func TestGuardTurnsPanicsIntoTheEnd(t *testing.T) {
	for _, b := range []broken{{inView: true}, {inUpdate: true}} {
		g := &guard{model: b}
		g.View()
		_, cmd := g.Update(ticked{})
		if g.fault == nil || cmd == nil {
			t.Fatalf("%+v: fault %v", b, g.fault)
		}
		if _, quits := cmd().(tea.QuitMsg); !quits || g.View() != "" {
			t.Errorf("%+v does not quit", b)
		}
	}
}
