package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/term"
)

// testPatience is how long a test waits for what must come.
const testPatience = 3 * time.Minute

// terminal is a pseudo-terminal with an emulator behind it, and the real program in it.
type terminal struct {
	t       *testing.T
	master  *os.File
	tty     *os.File // kept open, so that its modes can be read when the program has ended
	cmd     *exec.Cmd
	ended   chan error
	changed chan struct{}

	mu    sync.Mutex // guards what follows
	emu   *vt.Emulator
	wrote strings.Builder
}

// program is a copy of this test binary that runs as kappactl: see TestMain.
func program(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kappactl")
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// onTerminal starts kappactl on a terminal of this size.
func onTerminal(t *testing.T, width, height uint16, env []string, args ...string) *terminal {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	w := &terminal{t: t, master: master, tty: tty, ended: make(chan error, 1), changed: make(chan struct{}, 1), emu: vt.NewEmulator(int(width), int(height))}
	if err := pty.Setsize(master, &pty.Winsize{Cols: width, Rows: height}); err != nil {
		t.Fatal(err)
	}
	w.cmd = exec.Command(program(t), args...)
	races := filepath.Join(t.TempDir(), "race") // the detector would write on the terminal
	w.cmd.Env = append([]string{"TERM=xterm-256color", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "GORACE=log_path=" + races}, env...)
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = tty, tty, tty
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers, ok := w.emu.InputPipe().(io.Closer)
	if !ok {
		t.Fatal("the emulator's answers cannot be ended")
	}
	var out, in sync.WaitGroup
	out.Go(w.draw)
	in.Go(w.reply)
	go func() { w.ended <- w.cmd.Wait() }()
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill() // when it has ended already there is nothing to kill
		tty.Close()
		master.Close()
		out.Wait()
		answers.Close() // and not the emulator, whose Close races with its Read
		in.Wait()
		found, _ := filepath.Glob(races + ".*") // the pattern is a path of ours
		for _, f := range found {
			text, err := os.ReadFile(f)
			t.Errorf("data race in the program: %v\n%s", err, text)
		}
	})
	return w
}

// draw puts what the program writes on the screen.
func (w *terminal) draw() {
	buf := make([]byte, 1<<16)
	for {
		n, err := w.master.Read(buf)
		w.mu.Lock()
		w.wrote.Write(buf[:n])
		_, _ = w.emu.Write(buf[:n]) // the emulator draws what it understands
		w.mu.Unlock()
		select {
		case w.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// reply sends what the terminal answers to the program's questions.
func (w *terminal) reply() {
	buf := make([]byte, 1<<10)
	for {
		n, err := w.emu.Read(buf)
		if err != nil {
			return
		}
		_, _ = w.master.Write(buf[:n]) // when it is closed nobody reads, but the emulator goes on to answer
	}
}

func (w *terminal) screen() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.emu.String()
}

func (w *terminal) press(keys string) {
	w.t.Helper()
	if _, err := w.master.WriteString(keys); err != nil {
		w.t.Fatal(err)
	}
}

func (w *terminal) resize(width, height uint16) {
	w.t.Helper()
	w.mu.Lock()
	w.emu.Resize(max(1, int(width)), max(1, int(height)))
	w.mu.Unlock()
	if err := pty.Setsize(w.master, &pty.Winsize{Cols: width, Rows: height}); err != nil {
		w.t.Fatal(err)
	}
}

// await waits until the screen is as wanted. What an ended program has written may still be on its way.
func (w *terminal) await(what string, wanted func(screen string) bool) {
	w.t.Helper()
	timeout := time.NewTimer(testPatience)
	defer timeout.Stop()
	for ended := w.ended; !wanted(w.screen()); {
		select {
		case <-w.changed:
		case err := <-ended:
			w.ended <- err
			ended = nil
			timeout.Reset(testPatience / 10)
		case <-timeout.C:
			w.t.Fatalf("the screen does not show %s:\n%s", what, w.screen())
		}
	}
}

func (w *terminal) shows(words ...string) {
	w.t.Helper()
	w.await(fmt.Sprintf("%q", words), func(screen string) bool {
		for _, word := range words {
			if !strings.Contains(screen, word) {
				return false
			}
		}
		return true
	})
}

// ends waits for the end of the program, with this exit code and the terminal as it was.
func (w *terminal) ends(code int, modes *term.State) {
	w.t.Helper()
	select {
	case err := <-w.ended:
		w.ended <- err
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			w.t.Fatal(err)
		}
		if got := w.cmd.ProcessState.ExitCode(); got != code {
			w.t.Errorf("exit code %d, want %d:\n%s", got, code, w.screen())
		}
	case <-time.After(testPatience):
		w.t.Fatalf("does not end:\n%s", w.screen())
	}
	if !reflect.DeepEqual(modes, w.modes()) {
		w.t.Error("the modes of the terminal are not as before: it is left raw")
	}
	w.await("the main screen", func(string) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !w.emu.IsAltScreen() && !w.emu.CursorHidden()
	})
}

func (w *terminal) modes() *term.State {
	w.t.Helper()
	s, err := term.GetState(int(w.tty.Fd()))
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}
